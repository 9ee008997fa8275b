# The image of a release, built from source with Docker or Podman alone:
#
#   docker build -t ghcr.io/lameduck-init/lameduck:1 .
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN make build

FROM scratch
COPY --from=build /src/lameduck /lameduck
USER 65532:65532
ENTRYPOINT ["/lameduck"]
