# Writes stops.log: one stop of each kind that the pages query, and a line of another
# program first.
ip link set lo up
echo "myserver: ready" >stops.log

stop() {
	: >started
	lameduck --log-format=json --termination-log=none "$@" >started 2>>stops.log &
	until grep -q ready started; do sleep 0.05; done
}

# Quiet, after a warning.
LAMEDUCK_DELAI=10 stop --until=quiet --quiet-for=1 --grace-period=30 -- myserver :8080
kill $!; wait $!

# A request in flight at the ceiling, which myserver never answers.
stop --until=quiet --max-delay=1 --grace-period=30 -- myserver :8080
exec 3<>/dev/tcp/127.0.0.1/8080
echo GET / HTTP/1.1 >&3
kill $!; wait $!
exec 3>&-

# KILL by lameduck, and by the orchestrator after the report of a command that still runs.
stubborn='trap "" TERM; echo ready; exec sleep 100'
stop --delay=1 --kill-after=1 --grace-period=30 -- sh -c "$stubborn"
kill $!; wait $!
lines=$(wc -l <stops.log)
stop --delay=1 --grace-period=3 -- sh -c "$stubborn"
kill $!
until [ "$(wc -l <stops.log)" = $((lines + 2)) ]; do sleep 0.05; done
{ kill -KILL $!; wait $!; } 2>/dev/null # bash says that it was killed
