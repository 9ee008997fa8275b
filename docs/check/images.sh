#!/usr/bin/env bash
# Builds our images: that of a release, by Dockerfile.release and, called source, by Dockerfile; of
# Dockerfile.example; and of the Go example; and stops the last two under load. The images in FROM
# are made of this machine's programs. Exit code 77: podman does not work here, or a program is missing.
set -euo pipefail
for program in podman runc conmon ip unshare haproxy make curl; do
	command -v "$program" >/dev/null || { echo "$program is not installed"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "only root can make a network"; exit 77; }
# The containers share a network of their own with the load.
[ -n "${IMAGES_NETWORK:-}" ] || IMAGES_NETWORK=own exec unshare --net "$0"
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
leave() {
	kill $(jobs -p) 2>/dev/null || true
	"$dir/podman" rm -a -f -t 0 >/dev/null || true
	umount -l "$dir/root/overlay" 2>/dev/null || true
	rm -rf "$dir"
}
trap leave EXIT

# No need of systemd, of a network, and of limits above the caller's own.
cat >"$dir/containers.conf" <<EOF
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
[containers]
netns = "host"
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

ip link set lo up
ip address add 10.77.0.1/32 dev lo # of haproxy.cfg
cat >"$dir/behind.cfg" <<'EOF'
defaults
	mode http
	timeout client 30s
	timeout tarpit 4s
frontend app
	bind 10.77.0.1:8081
	http-request tarpit deny_status 200 if { path /slow }
	http-request return status 200
EOF
haproxy -db -f "$dir/behind.cfg" &

# load makes a request every 50 ms until there is the file DIR/quit, whatever the earlier ones do, and
# notes their status codes, 000 without an answer. One in 17 is answered after four seconds, longer
# than the silence that a hold waits for. Nothing is retried.
load() {
	local n=0 path
	while [ ! -e "$dir/quit" ]; do
		n=$((n + 1)) path=
		[ $((n % 17)) != 0 ] || path=slow
		curl -s -o "$dir/answer" --max-time 60 -w '%{http_code}\n' "http://127.0.0.1:8080/$path" >>"$dir/codes" &
		sleep 0.05
	done
	wait
}

fail() { echo "$*"; cat "$dir/said"; "$dir/podman" logs c; sort "$dir/codes" | uniq -c; exit 1; }
logged() { "$dir/podman" logs c 2>&1 | grep -q "$1"; }
failed() { grep -qvx 200 "$dir/codes"; }
# soon COMMAND... polls a command for a minute.
soon() {
	local end=$((SECONDS + 60))
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "waited in vain for $*"
		sleep 0.1
	done
}

# stop WHEN PODMAN-WORDS... stops a container under load, which goes on for two seconds after WHEN
# is true.
stop() {
	local load podman
	rm -f "$dir/quit"
	: >"$dir/codes" >"$dir/said"
	"$dir/podman" run -d --timeout 120 --replace --name c -e LAMEDUCK_GRACE_PERIOD=60 -e LAMEDUCK_LOG_FORMAT=json \
		"${@:2}" >/dev/null
	soon curl -s -o "$dir/answer" http://127.0.0.1:8080/
	load &
	load=$!
	sleep 2
	! failed || fail "requests fail before the stop"
	"$dir/podman" stop -t 60 c >"$dir/said" 2>&1 &
	podman=$!
	soon $1
	sleep 2
	touch "$dir/quit"
	wait $load $podman
	! grep SIGKILL "$dir/said" || fail "the stop ends with KILL"
}

# stops SIGNAL CODE PODMAN-WORDS... stops an image with a hold, which loses no request, and without, which
# loses some, or the load is blind.
stops() {
	local sent="\"sent\":\[{\"signal\":\"$1\",\"at_ms\":[0-9]*}\]"
	stop "logged trigger" "${@:3}"
	! failed || fail "requests fail"
	logged "\"trigger\":\"$1\".*\"ended\":\"quiet\".*$sent" || fail "not held until quiet, with $1"
	[ "$("$dir/podman" inspect -f '{{.State.ExitCode}}' c)" = "$2" ] || fail "the exit code is not $2"
	stop failed -e LAMEDUCK_UNTIL=elapsed "${@:3}"
	echo "stopped by $1 under load"
}
stops USR1 0 -v "$dir/haproxy.cfg:/usr/local/etc/haproxy/haproxy.cfg:ro" haproxy-lameduck
stops TERM 143 go-lameduck
