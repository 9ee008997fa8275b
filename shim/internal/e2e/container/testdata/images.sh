#!/bin/sh
# Makes the images of the tests in the store of the function podman: "images.sh LAMEDUCK DIR
# PODMAN...", where DIR has the helper. The images have lameduck as the entrypoint, lameduck named
# docker-init, no entrypoint, and a process that only keeps the namespaces of a pod.
set -e
lameduck=$1 dir=$2
shift 2
mkdir -p "$dir/fs/sbin"
cp "$lameduck" "$dir/fs/lameduck"
mv "$dir/helper" "$dir/fs/helper"
ln -s /lameduck "$dir/fs/sbin/docker-init"
ln -s helper "$dir/fs/pause"
tar -C "$dir/fs" -cf "$dir/image.tar" .
image() { name=$1; shift; "$@" import -q --change "ENTRYPOINT $entrypoint" "$dir/image.tar" "localhost/$name"; }
entrypoint='[]' image bare "$@"
entrypoint='["/lameduck"]' image lameduck "$@"
entrypoint='["/sbin/docker-init", "--"]' image docker "$@"
entrypoint='["/pause"]' image pause "$@"
"$@" run localhost/bare /lameduck --version
