package main

// helpText is the everyday flags on one screen: 80 columns, 24 lines where
// possible.
const helpText = `lameduck runs COMMAND as a container's first process: it reaps orphans, passes
signals on, and on TERM keeps COMMAND serving for a while before it stops it.

usage: lameduck [flags] [--] COMMAND [ARG...]
       lameduck hold [flags]  only the hold: a preStop hook (hold --help)
       lameduck watch [flags] what a hold would see, live (watch --help)
       lameduck presets NAME  what a preset does, with its source
       lameduck install DIR   copy this program to DIR/lameduck

signals
  -r, --rewrite=FROM:TO,...    send TO where FROM arrives; HUP:0 drops HUP
      --stop-signal=SIG,...    start the stop on SIG too; TERM and what TERM is
                               rewritten to always do
                                 lameduck -d 5 -r TERM:USR1 -- haproxy -f FILE
  -p, --preset=NAME            what a known server takes for a graceful stop:
                               nginx, postgres, ...; auto: by the program
                                 lameduck -p auto -u quiet -- run.sh nginx
hold
  -d, --delay=DUR              keep serving this long after a stop signal, then
                               pass it on; a second one, or INT, skips [0]
                                 lameduck --delay=10 -- myserver
  -u, --until=COND             hold on until traffic stops: settled (no new
                               connection), quiet (nor a byte, nor a request
                               in flight), drained (none open) [elapsed]
                                 lameduck --until=quiet -- myserver
stop
      --grace-period=DUR       what the orchestrator gives before it sends KILL;
                               the hold must fit  [30s in Kubernetes and ECS, 5s
                               in Nomad, else 10s]
exit
  -e, --exit-code=FROM[:TO],...  report exit code FROM as TO [0]
                                 lameduck -e 143 -- java -jar app.jar
report
      --log-level=LEVEL        error, warn, info or debug, on stderr [warn]

  -h, --help  --help-all  --version
      --explain                say what would happen at a stop; start nothing

DUR is seconds (10) or units (1m30s). SIG is a name (TERM, SIGTERM, RTMIN+3) or
a number. Every flag has a variable: LAMEDUCK_DELAY=10 is --delay=10.
`

// helpAllText follows it for --help-all.
const helpAllText = `
more signals
  -g, --group                  signal COMMAND's process group, not COMMAND alone
                                 lameduck -g -- sh -c 'producer | consumer'
      --drop-unhandled         pass on only what COMMAND catches, so that a HUP
                               that it never expected does not kill it; never
                               applied to the stop
                                 lameduck --drop-unhandled -- myserver
more hold
      --quiet-for=DUR          how long the silence must last [3s, or half of
                               the longest hold if that is less]
      --max-silence=DUR        a request in flight without a byte for this long
                               no longer holds [30s, or half of the longest]
      --max-delay=DUR          hold no longer than this [from the grace period]
      --count-port=PORT,...    the local ports that count [those that the
                               container listens on]
      --ignore-port=PORT,...   local ports that do not count [none]
      --ignore-peer=CIDR,...   peers that do not count [none]
                                 lameduck -u quiet --ignore-peer=10.0.0.1 -- srv
      --ignore-probes          leave out what looks like health probes: from one
                               peer, short, the same few bytes, steadily
      --wait-gone=PATH         also hold while PATH is there: a neighbour's
                               --alive-file, or a socket; repeatable [none]
                                 lameduck --wait-gone=/run/app/alive -- envoy
      --on-stop=COMMAND        run when the stop begins, with LAMEDUCK_PID and
                               LAMEDUCK_SIGNAL set; the hold lasts until it has
                               ended, and it is killed at the longest hold
                                 lameduck --on-stop=deregister -- myserver
more stop
      --stop-schedule=SCHEDULE what to send after the hold: signals, times to
                               wait, and forever, which repeats the rest; TIME
                               alone: the stop signal, TIME, KILL [the signal]
                                 lameduck --stop-schedule=USR1/30/TERM -- srv
      --kill-after=DUR         KILL what still runs so long after the first
                               signal was sent [never]
                                 lameduck --kill-after=20 -- myserver
      --linger=DUR             when COMMAND has exited, send TERM to what is
                               left, wait this long for all of it, then KILL [0]
                                 lameduck --linger=5 -- mydaemon
more report
      --termination-log=PATH   where the report of a stop goes as well, or none
                               [/dev/termination-log where that is a file]
      --log-format=FORMAT      text or json, a line each [text]
                                 lameduck -d 10 --log-format=json -- myserver
neighbours
      --health=LISTEN[=TARGET] answer health checks on LISTEN (:9000): passed on
                               to TARGET (:8080), which then are no traffic
                                 lameduck --health=:9000=:8080 -d 5 -- myserver
      --health-during=MODE     and from the first stop signal on: fail (503),
                               close (refused) or pass [pass in Kubernetes, else
                               fail]
      --alive-file=PATH        is there, locked, while COMMAND runs: what
                               --wait-gone waits for [none]
                                 lameduck --alive-file=/run/app/alive -- srv
process
  -s, --subreaper              reap orphans where not PID 1; =false leaves them
                               [whenever possible]
                                 lameduck --subreaper=false -- make
      --parent-death-signal=SIG  what lameduck gets when its parent dies [none]
                                 lameduck --parent-death-signal=TERM -- myserver

Variables: LAMEDUCK_REWRITE, LAMEDUCK_STOP_SIGNAL, LAMEDUCK_PRESET,
LAMEDUCK_GROUP,
LAMEDUCK_DROP_UNHANDLED, LAMEDUCK_DELAY, LAMEDUCK_UNTIL, LAMEDUCK_QUIET_FOR,
LAMEDUCK_MAX_SILENCE, LAMEDUCK_MAX_DELAY, LAMEDUCK_COUNT_PORT,
LAMEDUCK_IGNORE_PORT, LAMEDUCK_IGNORE_PEER, LAMEDUCK_IGNORE_PROBES,
LAMEDUCK_WAIT_GONE, LAMEDUCK_ON_STOP, LAMEDUCK_GRACE_PERIOD,
LAMEDUCK_STOP_SCHEDULE, LAMEDUCK_KILL_AFTER, LAMEDUCK_LINGER,
LAMEDUCK_EXIT_CODE, LAMEDUCK_ALIVE_FILE, LAMEDUCK_HEALTH,
LAMEDUCK_HEALTH_DURING, LAMEDUCK_SUBREAPER,
LAMEDUCK_PARENT_DEATH_SIGNAL, LAMEDUCK_TERMINATION_LOG, LAMEDUCK_LOG_LEVEL and
LAMEDUCK_LOG_FORMAT. A flag wins over its variable, an empty variable counts as
unset, and COMMAND does not get them.

Flags end at the first word that is no flag; "--" before COMMAND is always safe.

A stop: TERM, what TERM is rewritten to (INT aside) and --stop-signal start it,
as they arrive. With a --delay the hold begins: COMMAND runs on untouched and
gets all other signals. It ends when the delay has passed, or at once when a
second stop signal comes (within a second of the first it counts as the same),
when INT comes, or when COMMAND exits. With --until it goes on from there until
traffic has stopped, to the longest hold at most; it ends at once where COMMAND
listens nowhere, or is hung. Then the stop signal is sent, rewritten,
once. lameduck sends no KILL that was not asked for. Without a delay every stop
signal is passed on at once.

The hold must fit into the grace period: of G seconds, G - R - 1 are for the
hold, where R is 10 or a third of G, whichever is less, and --linger. Over a
grace period that was given a longer delay is an error; over one that was
assumed, a warning.

Called as tini, tini-static, docker-init, dumb-init, catatonit, podman-init or
pause, lameduck takes that program's flags, variables and exit codes; LAMEDUCK_*
variables work there too.

Exit codes: COMMAND's own; 128+n when signal n killed it; 127 not found; 126
found but not executable; 125 an error of lameduck's own, before COMMAND ran.
`
