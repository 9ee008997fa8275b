package soak

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/proc"
	client "github.com/lameduck-init/lameduck/cmd/lab/load"
)

// act does one thing at random and checks that no resource has leaked.
func (l *life) act() {
	acts := []func(){l.storm, l.orphans, l.pause}
	if !l.isBad() {
		acts = append(acts, l.watch, l.hook)
	}
	if l.health {
		acts = append(acts, l.checks)
	}
	acts[l.rnd.IntN(len(acts))]()
	n := l.load.failed.Load()
	must.Be(n == 0, "%d requests failed before any stop", n)
	l.check()
}

// runs has the command run a line of shell, which must succeed.
func (l *life) runs(what string, n int64, format string, args ...any) {
	l.total.Add(what, n)
	line := fmt.Sprintf(format, args...)
	status := l.ask(line)
	must.Be(status == "exit status 0", "%s: %s: %s", what, line, status)
}

// reach sends signals by send, of which at least one of each kind must reach the command: the
// kernel merges a signal with a pending one of the same kind.
func (l *life) reach(send func(), kinds ...unix.Signal) {
	before := l.arrived()
	send()
	must.Be(must.Soon(patience, func() bool {
		now := l.arrived()
		return !slices.ContainsFunc(kinds, func(s unix.Signal) bool { return now[s] <= before[s] })
	}), "signals: not all of %v have reached the command", kinds)
}

// arrived returns how many signals of each kind the command has received.
func (l *life) arrived() (counts map[unix.Signal]int) {
	must.Do(json.Unmarshal([]byte(l.ask("signals")), &counts))
	return counts
}

// storm sends signals without a pause.
func (l *life) storm() {
	kinds := []unix.Signal{unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH}
	l.reach(func() {
		for range 50 + l.rnd.IntN(2000) {
			l.signal(kinds[l.rnd.IntN(len(kinds))])
		}
	}, kinds...)
}

// orphans has the command leave hundreds or thousands of orphans behind.
func (l *life) orphans() {
	families := 1 + l.rnd.Int64N(30)
	l.runs("orphans", 100*families, "for i in $(seq %d); do (for j in $(seq 100); do : & done); done", families)
}

// pause stops the command with SIGSTOP, sends USR2, and continues the command.
func (l *life) pause() {
	l.total.Add("pauses", 1)
	all := proc.Children(l.pid)
	must.Be(len(all) > 0, "lameduck has no child")
	l.reach(func() {
		unix.Kill(all[0], unix.SIGSTOP) // the oldest child, the command
		l.signal(unix.SIGUSR2)
		unix.Kill(all[0], unix.SIGCONT)
	}, unix.SIGUSR2)
}

// watch runs lameduck watch beside the command, and ends it after the first line.
func (l *life) watch() {
	l.runs("watches", 1, `(sh -c 'echo $$; exec %s watch --json'; echo ended $?) | `+
		`(read pid; read line; kill -INT $pid; grep -qx "ended 0")`, l.init)
}

// hook runs lameduck hold as a preStop hook would.
func (l *life) hook() {
	l.runs("hooks", 1, "%s hold --until=settled --delay=0.1 --quiet-for=0.1 --max-delay=0.5", l.init)
}

// checks sends health checks, and now and then hangs up before the answer.
func (l *life) checks() {
	for range 1 + l.rnd.IntN(20) {
		l.total.Add("health checks", 1)
		conn := must.Get(client.Dial(fmt.Sprintf("127.0.0.1:%d", l.port+1), time.Now().Add(patience)))
		if l.rnd.IntN(4) > 0 {
			answer := must.Get(conn.HTTP("/", "", false))
			must.Be(answer.Status == 200, "a health check was answered with %d", answer.Status)
		}
		conn.Close()
	}
}

// stop ends a life in a way chosen at random.
func (l *life) stop() {
	way := l.rnd.IntN(5)
	if !l.adaptive {
		way = max(way, 3)
	}
	switch way {
	case 0, 1: // a second TERM or INT cuts the hold short
		l.holds("holds cut short")
		time.Sleep(1100 * time.Millisecond) // within a second a repeat counts as the same signal
		l.signal([]unix.Signal{unix.SIGTERM, unix.SIGINT}[way])
	case 2: // the command exits during the hold
		l.holds("exits during a hold")
		fmt.Fprintln(l.orders, "exit")
	case 3:
		l.total.Add("stops", 1)
		l.load.end()
		l.signal(unix.SIGTERM)
	case 4: // the command ignores TERM
		l.survives()
		fmt.Fprintln(l.orders, "exit")
	}
	timer := time.AfterFunc(patience, func() { l.cmd.Process.Kill() })
	l.cmd.Wait()
	code := l.cmd.ProcessState.ExitCode()
	must.Be(timer.Stop() && code == 7, "exit code %d, want 7", code)
}

// holds begins a hold, which lasts since the load goes on, and acts meanwhile. A hold has
// a few descriptors of its own.
func (l *life) holds(what string) {
	l.total.Add(what, 1)
	l.signal(unix.SIGTERM)
	begun := func() bool { return read(l.pid).descriptors > l.base.descriptors }
	must.Be(must.Soon(patience, begun), "no hold has begun")
	l.base.descriptors += 10
	l.orphans()
	l.storm()
	l.check()
}

// survives acts after a stop that the command has ignored. lameduck samples until the
// end, for the report, with the two sockets of the hold; no other descriptor remains.
func (l *life) survives() {
	l.total.Add("stops ignored", 1)
	l.ask("deaf")
	l.load.end()
	l.reach(func() { l.signal(unix.SIGTERM) }, unix.SIGTERM)
	l.base.descriptors += 2
	l.storm()
	l.orphans()
	l.check()
}
