# needs /usr/bin/python3 unshare
# A program without a TCP port in the network namespace. Argument: the socket that it has.
case $1 in
elsewhere) exec="exec unshare --net" ;;
*) exec=exec ;;
esac
$exec /usr/bin/python3 -c '
import socket, sys, threading, time

kind = sys.argv[1]
if kind == "unix":
    opened = socket.socket(socket.AF_UNIX)
    opened.bind("\0truth")
    opened.listen()
elif kind == "udp":
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.bind(("", 0))
elif kind == "datagrams": # each is answered after its number of seconds
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.bind(("", 8080))
    open("ready", "w").close()
    while True:
        text, peer = opened.recvfrom(2000)
        threading.Timer(float(text), opened.sendto, (b"answer\n", peer)).start()
elif kind == "icmp":
    opened = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
elif kind == "elsewhere":
    opened = socket.create_server(("", 8080))
open("ready", "w").close()
time.sleep(1e6)
' "$1"
