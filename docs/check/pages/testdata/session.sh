# What the console blocks use. kubectl exec runs the command beside the shell, which is in
# the pod.
kubectl() {
	[ "$1" = exec ] || { echo "no rule for kubectl $1"; return; }
	while [ "$1" != -- ]; do shift; done
	shift
	program=${1##*/}
	shift
	served
	case $1 in
	watch) $program "$@" | head -n 1 ;;
	*) $program "$@" ;;
	esac
}

# served waits until a server listens on port 8080.
served() {
	until grep -q ':1F90 .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done
}
