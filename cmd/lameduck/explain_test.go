package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim"
)

// explained are sets of flags with the whole output of --explain, warnings first.
var explained = []struct {
	env  string
	args []string
	says string
}{
	{"", []string{"--", "true"}, `
runs true
on TERM: passes it on at once; no hold, schedule or preset was asked for
`},
	{"", []string{"--", "sh", "-c", "exit 7"}, `
runs sh -c 'exit 7'
on TERM: passes it on at once; no hold, schedule or preset was asked for
`},
	{"", []string{"--delay=5", "--grace-period=30", "--", "nginx"}, `
runs nginx
on TERM: keeps serving for 5 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  then TERM
  sends no KILL: that is the orchestrator's, at 30 s
your pod needs terminationGracePeriodSeconds of 30 or more (docker stop -t 30): 5 s for the hold, and 25 s for the command to stop by itself
`},
	{"", []string{"--delay=5", "--", "nginx", "-g", "daemon off;"}, `
runs nginx -g 'daemon off;'
on TERM: keeps serving for 5 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  then TERM
  sends no KILL: that is the orchestrator's, at 10 s, assumed (--grace-period)
your pod needs terminationGracePeriodSeconds of 9 or more (docker stop -t 9): 5 s for the hold, and 4 s for the command to stop by itself; 10 s is assumed: give --grace-period
`},
	{"KUBERNETES_SERVICE_HOST=10.0.0.1", []string{"--delay=5", "--", "nginx"}, `
runs nginx
on TERM: keeps serving for 5 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  then TERM
  sends no KILL: that is the orchestrator's, at 30 s, assumed (--grace-period)
your pod needs terminationGracePeriodSeconds of 9 or more (docker stop -t 9): 5 s for the hold, and 4 s for the command to stop by itself; 30 s is assumed: give --grace-period
`},
	{"", []string{"--until=quiet", "--grace-period=60", "--preset=haproxy", "--", "haproxy", "-f", "/etc/haproxy.cfg"}, `
runs haproxy -f /etc/haproxy.cfg
preset haproxy, stopped by USR1: closes its listeners and exits when the last connection has ended (bounded by hard-stop-after); TERM cuts all at once
on TERM or USR1: keeps serving until nobody has connected or sent a byte for 4 s and no request is in flight, at most 49 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  what looks like a health probe is left out once all other traffic has been silent for 4 s
  clients that keep their connections prolong the hold to 32 s after the last new connection
  then USR1
  sends no KILL: that is the orchestrator's, at 60 s
your pod needs terminationGracePeriodSeconds of 60 or more (docker stop -t 60): 49 s for the hold, and 11 s for the command to stop by itself
`},
	{"", []string{"--until=quiet", "--delay=15", "--ignore-probes", "--grace-period=60", "--", "x"}, `
runs x
on TERM: keeps serving at least 15 s, until nobody has connected or sent a byte for 4 s and no request is in flight, at most 49 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  what looks like a health probe is left out at once
  clients that keep their connections prolong the hold to 32 s after the last new connection
  then TERM
  sends no KILL: that is the orchestrator's, at 60 s
your pod needs terminationGracePeriodSeconds of 60 or more (docker stop -t 60): 49 s for the hold, and 11 s for the command to stop by itself
`},
	{"", []string{"--until=quiet", "--no-ignore-probes", "--grace-period=60", "--", "x"}, `
runs x
on TERM: keeps serving until nobody has connected or sent a byte for 4 s and no request is in flight, at most 49 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  what looks like a health probe counts
  clients that keep their connections prolong the hold to 32 s after the last new connection
  then TERM
  sends no KILL: that is the orchestrator's, at 60 s
your pod needs terminationGracePeriodSeconds of 60 or more (docker stop -t 60): 49 s for the hold, and 11 s for the command to stop by itself
`},
	{"", []string{"--until=drained", "--delay=0", "--quiet-for=2", "--max-delay=40", "--grace-period=60", "--", "envoy"}, `
runs envoy
on TERM: keeps serving until nobody has connected or sent a byte for 2 s and no connection is open, at most 40 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  what looks like a health probe is left out once all other traffic has been silent for 2 s
  then TERM
  sends no KILL: that is the orchestrator's, at 60 s
your pod needs terminationGracePeriodSeconds of 60 or more (docker stop -t 60): 40 s for the hold, and 20 s for the command to stop by itself
`},
	{"", []string{"--until=settled", "--", "x"}, `
runs x
on TERM: keeps serving until no new connection has come for 2.83 s, at most 5.67 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  what looks like a health probe is left out once all other traffic has been silent for 2.83 s
  then TERM
  sends no KILL: that is the orchestrator's, at 10 s, assumed (--grace-period)
your pod needs terminationGracePeriodSeconds of 10 or more (docker stop -t 10): 5.67 s for the hold, and 4.33 s for the command to stop by itself; 10 s is assumed: give --grace-period
`},
	{"", []string{"--preset=auto", "--until=quiet", "--grace-period=60", "--stop-schedule=USR1/30/TERM/5/KILL", "--", "run.sh", "nginx"}, `
runs run.sh nginx
preset auto, probably nginx, stopped by QUIT: closes its listeners, finishes the requests and exits (bounded by worker_shutdown_timeout); TERM and INT cut
on TERM or QUIT: keeps serving until nobody has connected or sent a byte for 4 s and no request is in flight, at most 24 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  what looks like a health probe is left out once all other traffic has been silent for 4 s
  then USR1, 30 s later TERM, 5 s later KILL, at 59 s at the latest
your pod needs terminationGracePeriodSeconds of 60 or more (docker stop -t 60): 24 s for the hold, and 36 s for the command to stop by itself
`},
	{"", []string{"--preset=auto", "--", "./run.sh"}, `
runs ./run.sh
preset auto: that of the program that runs when a stop signal arrives
on TERM: does not hold
  then TERM
  sends no KILL: that is the orchestrator's, at 10 s, assumed (--grace-period)
`},
	{"", []string{"--preset=varnish", "--", "varnishd"}, `
runs varnishd
preset varnish, stopped by TERM: stops its child at once, which cuts all requests
  caveat: every stop cuts what is under way: let the hold wait for it, with --until=drained or --until=quiet
on TERM: does not hold
  then TERM
  sends no KILL: that is the orchestrator's, at 10 s, assumed (--grace-period)
`},
	{"", []string{"--preset=java", "--exit-code=1:2", "--", "run"}, `
runs run
preset java, stopped by TERM: runs its shutdown hooks and exits with 143, which is reported as 0; QUIT dumps its threads and goes on; what happens to requests is the program's (Spring Boot: server.shutdown=graceful, the default since 3.4)
on TERM: does not hold
  then TERM
  sends no KILL: that is the orchestrator's, at 10 s, assumed (--grace-period)
reports exit code 1 as 2
reports exit code 143 as 0 after a stop
`},
	{"", []string{"--preset=postgres", "--delay=3", "--grace-period=40", "--", "postgres"}, `
runs postgres
preset postgres, stopped by TERM/2s/INT: smart shutdown first: new connections are refused, and it exits as soon as the last session has ended; after 2 s fast shutdown: open transactions are rolled back (alone, TERM waits forever for a pool's connections)
on TERM or INT: keeps serving for 3 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  then TERM, 2 s later INT
  sends no KILL: that is the orchestrator's, at 40 s
your pod needs terminationGracePeriodSeconds of 40 or more (docker stop -t 40): 3 s for the hold, and 37 s for the command to stop by itself
`},
	{"", []string{"--preset=postgres", "--kill-after=1", "--grace-period=40", "--", "postgres"}, `
runs postgres
preset postgres, stopped by TERM/2s/INT: smart shutdown first: new connections are refused, and it exits as soon as the last session has ended; after 2 s fast shutdown: open transactions are rolled back (alone, TERM waits forever for a pool's connections)
on TERM or INT: does not hold
  then TERM, KILL 1 s after the first signal, at 1 s
your pod needs terminationGracePeriodSeconds of 40 or more (docker stop -t 40)
`},
	{"", []string{"--kill-after=20", "--delay=3", "--grace-period=60", "--", "x"}, `
runs x
on TERM: keeps serving for 3 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  then TERM, KILL 20 s after the first signal, at 23 s
your pod needs terminationGracePeriodSeconds of 60 or more (docker stop -t 60): 3 s for the hold, and 57 s for the command to stop by itself
`},
	{"", []string{"--linger=5", "--grace-period=30", "--delay=1", "--", "x"}, `
runs x
on TERM: keeps serving for 1 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  then TERM
  sends no KILL: that is the orchestrator's, at 30 s
when the command has exited: TERM to its remaining descendants, and KILL 5 s later
your pod needs terminationGracePeriodSeconds of 30 or more (docker stop -t 30): 1 s for the hold, and 24 s for the command to stop by itself
`},
	{"", []string{"--stop-schedule=5/TERM/7/forever/TERM/2", "--grace-period=30", "--", "x"}, `
runs x
on TERM: does not hold
  then 5 s later TERM, 7 s later TERM/2s, repeated forever
  sends no KILL: that is the orchestrator's, at 30 s
your pod needs terminationGracePeriodSeconds of 30 or more (docker stop -t 30)
`},
	{"", []string{"--stop-schedule=USR1/5/forever/TERM/5/KILL/5", "--grace-period=30", "--", "x"}, `
runs x
on TERM: does not hold
  then USR1, 5 s later TERM/5s/KILL/5s, repeated forever
your pod needs terminationGracePeriodSeconds of 30 or more (docker stop -t 30)
`},
	{"", []string{"--stop-schedule=20", "--", "x"}, `
lameduck: warning: --stop-schedule=20s (LAMEDUCK_STOP_SCHEDULE): assumed grace period 10s ends first: give --grace-period (LAMEDUCK_GRACE_PERIOD) and docker stop -t
runs x
on TERM: does not hold
  then TERM, 20 s later KILL, at 20 s
your pod needs terminationGracePeriodSeconds of 21 or more (docker stop -t 21); 10 s is assumed: give --grace-period
`},
	{"", []string{"--wait-gone=/run/app/alive", "--on-stop=deregister \"b c\"", "--health=:9000=:8080", "--grace-period=30", "--", "envoy"}, `
runs envoy
passes health checks through, :9000=:8080, which do not count as traffic; from the first stop signal on they get 503
on TERM: keeps serving until /run/app/alive is gone, and --on-stop has ended, at most 19 s
  meanwhile runs deregister 'b c'
  a second stop signal, more than a second later, or INT, ends the hold at once
  then TERM
  sends no KILL: that is the orchestrator's, at 30 s
your pod needs terminationGracePeriodSeconds of 30 or more (docker stop -t 30): 19 s for the hold, and 11 s for the command to stop by itself
`},
	{"", []string{"--alive-file=/run/app/alive", "--health=:9000", "--health-during=close", "--delay=1", "--grace-period=30", "--", "x"}, `
runs x
keeps /run/app/alive locked while the command runs, for neighbors that wait for it
answers health checks on :9000 with 200; from the first stop signal on they are refused
on TERM: keeps serving for 1 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  then TERM
  sends no KILL: that is the orchestrator's, at 30 s
your pod needs terminationGracePeriodSeconds of 30 or more (docker stop -t 30): 1 s for the hold, and 29 s for the command to stop by itself
`},
	{"", []string{"--rewrite=TERM:USR1,HUP:0", "--stop-signal=QUIT", "--delay=1", "--grace-period=30", "--", "x"}, `
runs x
sends USR1 where TERM arrives
drops HUP
on TERM or QUIT or USR1: keeps serving for 1 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  then USR1
  if QUIT came: QUIT
  sends no KILL: that is the orchestrator's, at 30 s
your pod needs terminationGracePeriodSeconds of 30 or more (docker stop -t 30): 1 s for the hold, and 29 s for the command to stop by itself
`},
	{"", []string{"--rewrite=TERM:0", "--delay=3"}, `
lameduck: warning: --rewrite=TERM:0 (LAMEDUCK_REWRITE) drops TERM before it can start a stop: the command runs until it is killed
drops TERM
no signal begins a stop
`},
	{"", []string{"--until=quiet", "--max-delay=20", "--", "x"}, `
lameduck: warning: --max-delay=20s (LAMEDUCK_MAX_DELAY): assumed grace period 10s ends first: give --grace-period (LAMEDUCK_GRACE_PERIOD) and docker stop -t
runs x
on TERM: keeps serving until nobody has connected or sent a byte for 4 s and no request is in flight, at most 20 s
  a second stop signal, more than a second later, or INT, ends the hold at once
  what looks like a health probe is left out once all other traffic has been silent for 4 s
  then TERM
  sends no KILL: that is the orchestrator's, at 10 s, assumed (--grace-period)
your pod needs terminationGracePeriodSeconds of 31 or more (docker stop -t 31): 20 s for the hold, and 11 s for the command to stop by itself; 10 s is assumed: give --grace-period
`},
}

// TestExplain: --explain prints what would happen.
func TestExplain(t *testing.T) {
	for _, c := range explained {
		got := call(t, strings.Fields(c.env), append([]string{"--explain"}, c.args...)...)
		if text := "\n" + got.errOut + got.out; got.code != 0 || text != c.says {
			t.Errorf("%s %q: left with %d, says%s\nwant%s", c.env, c.args, got.code, text, c.says)
		}
		for line := range strings.Lines(got.errOut) {
			if !strings.HasPrefix(line, "lameduck: warning: ") {
				t.Errorf("%q: says %q on standard error", c.args, line)
			}
		}
	}
}

// TestExplainHold: --explain explains a preStop hook, as a flag of lameduck or of the hook.
func TestExplainHold(t *testing.T) {
	const says = `as a preStop hook: waits at least 5 s, until nobody has connected or sent a byte for 4 s and no request is in flight, and --on-stop has ended, at most 49 s
  meanwhile runs a 'b c'
  TERM or INT ends the wait at once
  what looks like a health probe is left out once all other traffic has been silent for 4 s
  clients that keep their connections prolong the hold to 32 s after the last new connection
  then exits with 0, and the orchestrator sends the stop signal
where PID 1 is a lameduck that holds by itself: exits with 0 at once
your pod needs terminationGracePeriodSeconds of 60 or more (docker stop -t 60): 49 s for the hold, and 11 s for the command to stop by itself
`
	flags := []string{"--delay=5", "--grace-period=60", "--on-stop=a 'b c'"}
	for _, words := range [][]string{{"--explain", "hold"}, {"hold", "--explain"}} {
		if got := call(t, nil, append(words, flags...)...); got != (result{out: says}) {
			t.Errorf("%q: %+v, want\n%s", words, got, says)
		}
	}
	const program = "runs hold\non TERM: passes it on at once; no hold, schedule or preset was asked for\n"
	if got := call(t, nil, "--explain", "--", "hold"); got != (result{out: program}) {
		t.Errorf("a program called hold: %+v, want\n%s", got, program)
	}
	const nothing = "returns at once: nothing to wait for; give --delay or --until\n"
	if got := call(t, nil, "hold", "--explain", "--until=elapsed"); got != (result{out: nothing}) {
		t.Errorf("without a condition: %+v, want\n%s", got, nothing)
	}
}

// TestExplainStartsNothing: --explain starts no program and creates no file.
func TestExplainStartsNothing(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	got := call(t, nil, "--explain", "--alive-file="+path("alive"), "--termination-log="+path("log"), "--on-stop=touch "+path("hook"), "--health=127.0.0.1:1", "--", "touch", path("command"))
	if list, _ := os.ReadDir(dir); got.code != 0 || len(list) > 0 {
		t.Errorf("left with %d, and made %v", got.code, list)
	}
}

// TestExplainRefuses: --explain has the same errors as a start, except for errors that
// depend on the machine: a pod is reviewed on another machine.
func TestExplainRefuses(t *testing.T) {
	for _, c := range refused {
		if len(c.args) == 0 || c.args[0] == "presets" || c.place {
			continue
		}
		if strings.HasPrefix(c.says, "no command") {
			if got := call(t, nil, append([]string{"--explain"}, c.args...)...); got.code != 0 {
				t.Errorf("%q: %+v", c.args, got)
			}
			continue
		}
		started := call(t, strings.Fields(c.env), c.args...)
		if got := call(t, strings.Fields(c.env), append([]string{"--explain"}, c.args...)...); got != started {
			t.Errorf("%q: %+v, want %+v", c.args, got, started)
		}
	}
}

// TestPresetTexts: each preset is explained on less than a screen, by all names, with the
// source.
func TestPresetTexts(t *testing.T) {
	list := call(t, nil, "presets")
	names := []string{shim.AutoPreset}
	for _, p := range shim.Presets() {
		names = append(append(names, p.Name), p.Aliases...)
	}
	for _, name := range names {
		got := call(t, nil, "presets", name)
		if got.code != 0 || got.errOut != "" || strings.Count(got.out, "\n") > 24 {
			t.Errorf("%s: %+v", name, got)
		}
		if name != "auto" && !strings.Contains(got.out, "\n  source    ") {
			t.Errorf("%s: no source in %s", name, got.out)
		}
		for line := range strings.Lines(got.out) {
			if len(line) > 81 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: a line of %d: %s", name, len(line), line)
			}
		}
		first, _, _ := strings.Cut(got.out, "\n")
		if !strings.Contains(first, name) || !strings.Contains("\n"+list.out, "\n"+strings.TrimSpace(strings.Split(first, ",")[0])+" ") {
			t.Errorf("%s is not listed, or is called %s", name, first)
		}
	}
	if strings.Count(list.out, "\n") > 30 {
		t.Errorf("the list is long:\n%s", list.out)
	}
}

// TestReadmeExplains: the README shows the true output of --explain.
func TestReadmeExplains(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "    $ lameduck ")
	command, rest, _ := strings.Cut(rest, "\n")
	var want strings.Builder
	for line := range strings.Lines(rest) {
		line, shown := strings.CutPrefix(line, "    ")
		if !shown {
			break
		}
		want.WriteString(line)
	}
	if got := call(t, nil, strings.Fields(command)...); !found || got.out != want.String() {
		t.Errorf("%s says\n%s\nthe README\n%s", command, got.out, want.String())
	}
}
