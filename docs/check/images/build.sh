#!/usr/bin/env bash
# "build.sh DIR" makes DIR/podman, which has a store of its own in DIR, and builds our
# images: that of a release, by Dockerfile.release and, called source, by Dockerfile; of
# Dockerfile.example; and of the Go example. The images in FROM are made of this machine's
# programs. Exit code 77: podman does not work here, or a program is missing.
set -euo pipefail
for program in podman runc conmon ip nsenter haproxy make; do
	command -v "$program" >/dev/null || { echo "$program is not installed"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "only root can give the containers a network"; exit 77; }
dir=$1
root=$(cd "$(dirname "$0")/../../.." && pwd)

# No need of systemd, of a network, and of limits above the caller's own.
cat >"$dir/containers.conf" <<EOF
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
[containers]
netns = "none"
log_driver = "k8s-file"
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
EOF
cat >"$dir/podman" <<EOF
#!/bin/sh
export HOME=$dir CONTAINERS_CONF=$dir/containers.conf
exec $(command -v podman) --root $dir/root --runroot $dir/run --tmpdir $dir/tmp "\$@"
EOF
chmod 755 "$dir/podman"
"$dir/podman" ps >/dev/null || exit 77

build() { "$dir/podman" build -q --pull=never "$@" >/dev/null; }

# base NAME PROGRAM... makes an image of programs and their libraries, of what is in
# DIR/base, and of the Dockerfile's further lines on standard input.
base() {
	mkdir -p "$dir/base/tmp"
	ldd "${@:2}" | grep -o '/[^ ]* (0x' | cut -d ' ' -f 1 | sort -u | xargs cp -L --parents -t "$dir/base" "${@:2}"
	{ printf 'FROM scratch\nCOPY . /\n' && cat; } >"$dir/Dockerfile"
	build -f "$dir/Dockerfile" -t "localhost/$1" "$dir/base"
	rm -r "$dir/base"
}

# This machine's Go is too large to copy.
golang=(-v "$(go env GOROOT):/usr/local/go:ro" -v "$(go env GOMODCACHE):/go/pkg/mod:ro"
	-v "$(go env GOCACHE):/tmp/.cache/go-build")
base golang:1.26 /bin/sh /usr/bin/make <<EOF
ENV PATH=/usr/local/go/bin:/usr/bin:/bin HOME=/tmp GOPATH=/go GOPROXY=off GOTOOLCHAIN=local
EOF
"$dir/podman" run --rm localhost/golang:1.26 /bin/sh -c : || exit 77

platform=linux/$(go env GOARCH)
install -D "$root/lameduck" "$dir/release/$platform/lameduck"
build --platform="$platform" -f "$root/Dockerfile.release" -t ghcr.io/lameduck-init/lameduck:1 "$dir/release"

build "${golang[@]}" -f "$root/Dockerfile" -t source "$root"

# Both have the same configuration, and run without privileges.
for image in ghcr.io/lameduck-init/lameduck:1 source; do
	echo "$image"
	config=$("$dir/podman" image inspect -f '{{.Config.User}} {{.Config.Entrypoint}} {{.Config.Cmd}}' "$image")
	[ "$config" = "65532:65532 [/lameduck] []" ]
	"$dir/podman" run --rm --read-only --cap-drop=ALL --security-opt=no-new-privileges "$image" --version |
		grep '^lameduck version '
done

build "${golang[@]}" -t go-lameduck "$root/docs/examples/docker/go"

# As the official entrypoint script does, ours adds -W and -db.
install -D -m 755 /dev/stdin "$dir/base/usr/local/bin/docker-entrypoint.sh" <<'EOF'
#!/bin/sh
shift
exec haproxy -W -db "$@"
EOF
base haproxy:3.2 /bin/sh /usr/sbin/haproxy <<EOF
ENV PATH=/usr/local/bin:/usr/sbin:/bin
USER 99:99
STOPSIGNAL SIGUSR1
EOF
build -f "$root/Dockerfile.example" -t haproxy-lameduck "$root"
cp "$root/docs/examples/docker/haproxy/haproxy.cfg" "$dir"
