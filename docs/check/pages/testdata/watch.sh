# Writes watch.log: what lameduck watch --json says about two stops, that of a bare server, which
# cuts two requests and refuses connections, whose watch is a native sidecar and gets TERM last, and one
# that a hold precedes.
ip link set lo up
: >watch.log

# watched SERVER...: starts a server, and watch beside it.
watched() {
	: >started
	"$@" >started 2>/dev/null &
	server=$!
	until grep -q ready started; do sleep 0.05; done
	lines=$(wc -l <watch.log)
	lameduck watch --json --quiet-for=1 --grace-period=30 --termination-log=none >>watch.log &
	watch=$!
	until [ "$(wc -l <watch.log)" -gt "$lines" ]; do sleep 0.05; done
}

watched myserver :8080
exec 3<>/dev/tcp/127.0.0.1/8080 4<>/dev/tcp/127.0.0.1/8080
echo GET / HTTP/1.1 >&3
echo GET / HTTP/1.1 >&4
until tail -n 1 watch.log | grep -q '"in_flight":2'; do sleep 0.05; done
kill $server
{ wait $server; } 2>/dev/null # bash says that it was killed
for _ in 1 2 3; do (exec 5<>/dev/tcp/127.0.0.1/8080) 2>/dev/null; done
until grep -q '"cut":2,"refused":3' watch.log; do sleep 0.05; done
kill $watch
wait $watch
exec 3>&- 4>&-

watched lameduck --until=quiet --quiet-for=1 --grace-period=30 --termination-log=none -- myserver :8080
kill $watch $server
exec 3<>/dev/tcp/127.0.0.1/8080 3>&-
wait $server $watch
