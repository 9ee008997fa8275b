# Becomes a server without privileges: its words. The end of standard input means that eth0,
# if the network is its own, is there.
cat
mount --make-rprivate /
mount -t proc proc /proc
if ip link show eth0 >/dev/null 2>&1; then
	ip link set lo up
	ip address add "$HOST/24" dev eth0
	ip link set eth0 up
fi
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --inh-caps=-all "$@"
