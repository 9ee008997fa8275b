package soak

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// act does one thing at random and checks that no resource has leaked.
func (l *life) act() {
	acts := []func(){l.storm, l.orphans, l.pause}
	if l.fault == "" {
		acts = append(acts, l.watch, l.hook)
	}
	if l.health {
		acts = append(acts, l.checks)
	}
	acts[l.rnd.IntN(len(acts))]()
	n := l.failed.Load()
	must(n == 0, "%d requests failed before any stop", n)
	l.check()
}

// runs has the command run a line of shell, which must succeed.
func (l *life) runs(what string, n int64, format string, args ...any) {
	l.total.Add(what, n)
	line := fmt.Sprintf(format, args...)
	status := l.ask(line)
	must(status == "exit status 0", "%s: %s: %s", what, line, status)
}

// reach sends signals by send, of which at least one of each kind must reach the command: the
// kernel merges a signal with a pending one of the same kind.
func (l *life) reach(send func(), kinds ...sig.Signal) {
	arrived := func() (counts map[sig.Signal]int) {
		json.Unmarshal([]byte(l.ask("signals")), &counts)
		return counts
	}
	before := arrived()
	send()
	must(soon(testutil.Patience, func() bool {
		now := arrived()
		return !slices.ContainsFunc(kinds, func(s sig.Signal) bool { return now[s] <= before[s] })
	}), "signals: not all of %v have reached the command", kinds)
}

// storm sends signals without a pause.
func (l *life) storm() {
	kinds := []sig.Signal{sig.HUP, sig.USR1, sig.USR2, sig.WINCH}
	l.reach(func() {
		for range 50 + l.rnd.IntN(2000) {
			l.Signal(kinds[l.rnd.IntN(len(kinds))])
			l.total.Add("signals", 1)
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
	command := l.Child()
	l.reach(func() {
		unix.Kill(command, unix.SIGSTOP)
		l.Signal(sig.USR2)
		unix.Kill(command, unix.SIGCONT)
	}, sig.USR2)
}

// watch runs lameduck watch beside the command, and ends it after the first line.
func (l *life) watch() {
	l.runs("watches", 1, `(sh -c 'echo $$; exec %s watch --json'; echo ended $?) | `+
		`(read pid; read line; kill -INT $pid; grep -qx "ended 0")`, box.Binary)
}

// hook runs lameduck hold as a preStop hook would.
func (l *life) hook() {
	l.runs("hooks", 1, "%s hold --until=settled --delay=0.1 --quiet-for=0.1 --max-delay=0.5", box.Binary)
}

// checks sends health checks, and now and then hangs up before the answer.
func (l *life) checks() {
	for range 1 + l.rnd.IntN(20) {
		l.total.Add("health checks", 1)
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.port+1))
		must(err == nil, "a health check: %v", err)
		if l.rnd.IntN(4) > 0 {
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n\r\n")
			answer, _ := io.ReadAll(conn)
			must(strings.HasPrefix(string(answer), "HTTP/1.1 200 "), "a health check was answered with %q", answer)
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
		l.Signal([]sig.Signal{sig.TERM, sig.INT}[way])
	case 2: // the command exits during the hold
		l.holds("exits during a hold")
		l.Send("exit")
	case 3:
		l.total.Add("stops", 1)
		l.end()
		l.Signal(sig.TERM)
	case 4: // the command ignores TERM
		l.survives()
		l.Send("exit")
	}
	code := l.WaitExit()
	must(code == 7, "exit code %d, want 7", code)
}

// holds begins a hold, which lasts since the load goes on, and acts meanwhile. A hold has
// a few descriptors of its own.
func (l *life) holds(what string) {
	l.total.Add(what, 1)
	l.Trigger()
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
	l.end()
	l.reach(func() { l.Signal(sig.TERM) }, sig.TERM)
	l.base.descriptors += 2
	l.storm()
	l.orphans()
	l.check()
}

// command is an HTTP server on a port. TERM ends the command with 7, as long as the command is not
// deaf. Each line on standard input is an order, which may be a line of shell, and the answer to an
// order is a line on standard output.
func command(args []string) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	box.Die(err)
	go http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	got := make(chan os.Signal, 1000)
	signal.Notify(got)
	orders := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			orders <- in.Text()
		}
		os.Exit(98) // the soak is gone
	}()
	fmt.Println("ready")
	deaf := false
	counts := map[syscall.Signal]int{} // of the signals that have arrived
	for {
		select {
		case s := <-got:
			if s == syscall.SIGTERM && !deaf {
				os.Exit(7)
			}
			counts[s.(syscall.Signal)]++
		case order := <-orders:
			switch order {
			case "exit":
				os.Exit(7)
			case "deaf", "signals":
				deaf = deaf || order == "deaf"
				text, _ := json.Marshal(counts)
				fmt.Println(string(text))
			default: // the shell's orphans are PID 1's, and do not disturb Run
				cmd := exec.Command("sh", "-c", order)
				cmd.Run()
				fmt.Println(cmd.ProcessState)
			}
		}
	}
}
