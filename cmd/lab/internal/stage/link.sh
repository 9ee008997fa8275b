# Links our network with that of process $1: the device $2 with the address $3 here, and eth0 with
# the address $4 there, which exist already if $5 is true. Both ends are up before the first
# connection: the kernel repeats a question for an address, ARP, after a second.
pid=$1 name=$2 here=$3 there=$4
if [ "$5" = false ]; then
	ip link add "$name" type veth peer name eth0 netns "$pid"
fi
printf '%s\n' "address add $here/24 dev $name" "link set $name up" | ip -batch -
printf '%s\n' "link set lo up" "address add $there/24 dev eth0" "link set eth0 up" "route add default via $here" |
	nsenter --net="/proc/$pid/ns/net" ip -batch -
