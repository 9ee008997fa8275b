# needs nghttpx
# nghttpx before the upstream: HTTP/1.1 and HTTP/2.
exec nghttpx --conf=/dev/null --no-ocsp --accesslog-file=/dev/null \
	-f "${HOST:-*},8080;no-tls" -b "${UPSTREAM%:*},${UPSTREAM##*:}"
