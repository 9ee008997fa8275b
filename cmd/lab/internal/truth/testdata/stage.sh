# Configures the own end of the link, $1, with a route through the other end, $2. A forwarding
# namespace of clients would answer for those that have vanished.
own=$1 other=$2
shift 2
echo 0 >/proc/sys/net/ipv4/ip_forward
ip link set lo up
ip address add "$own/24" dev eth0
ip link set eth0 up
ip route add default via "$other"
