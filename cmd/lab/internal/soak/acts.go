package soak

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// act does one thing at random and checks that no resource has leaked.
func (l *life) act() error {
	acts := []func(*life) error{(*life).storm, (*life).orphans, (*life).pause}
	if !strings.HasPrefix(l.init, "bad:") {
		acts = append(acts, (*life).watch, (*life).hook)
	}
	if l.health > 0 {
		acts = append(acts, (*life).checks)
	}
	if err := acts[l.rnd.IntN(len(acts))](l); err != nil {
		return err
	}
	if n := l.load.failed.Load(); n > 0 {
		return fmt.Errorf("%d requests failed before any stop", n)
	}
	return check(l.pid, l.base, false)
}

// ask gives the command an order and returns the line that contains answer.
func (l *life) ask(answer, format string, args ...any) (string, error) {
	fmt.Fprintf(l.stdin, format+"\n", args...)
	return l.out.wait(answer)
}

// runs has the command run a program, which must succeed.
func (l *life) runs(format string, args ...any) error {
	said, err := l.ask("ran ", format, args...)
	if err != nil || said != "ran exit status 0" {
		return fmt.Errorf(format+": %s, %v", append(args, said, err)...)
	}
	return nil
}

// storm sends signals without a pause. At least one of each kind must arrive; the kernel
// merges a signal with a pending one of the same kind.
func (l *life) storm() error {
	kinds := []unix.Signal{unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH}
	before, err := l.arrived()
	if err != nil {
		return err
	}
	for range 50 + l.rnd.IntN(2000) {
		l.signal(kinds[l.rnd.IntN(len(kinds))])
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		now, err := l.arrived()
		if err != nil {
			return err
		}
		missing := 0
		for _, s := range kinds {
			if now[s] <= before[s] {
				missing++
			}
		}
		switch {
		case missing == 0:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("signals: before the storm %v, then %v", before, now)
		}
	}
}

// arrived returns how many signals of each kind the command has received.
func (l *life) arrived() (map[unix.Signal]int, error) {
	line, err := l.ask("signals", "signals")
	counts := map[unix.Signal]int{}
	for _, word := range strings.Fields(line)[min(1, len(line)):] {
		var s, n int
		fmt.Sscanf(word, "%d=%d", &s, &n)
		counts[unix.Signal(s)] = n
	}
	return counts, err
}

// orphans has the command leave hundreds or thousands of orphans behind.
func (l *life) orphans() error {
	families := 1 + l.rnd.IntN(30)
	l.total.add("orphans", 100*families)
	return l.runs("orphans %d", families)
}

// pause stops the command with SIGSTOP, sends USR2, and continues the command.
func (l *life) pause() error {
	all := children(l.pid)
	if len(all) == 0 {
		return errors.New("lameduck has no child")
	}
	before, err := l.arrived()
	if err != nil {
		return err
	}
	command := all[0] // the oldest child
	unix.Kill(command, unix.SIGSTOP)
	l.signal(unix.SIGUSR2)
	unix.Kill(command, unix.SIGCONT)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if now, err := l.arrived(); err != nil || now[unix.SIGUSR2] > before[unix.SIGUSR2] {
			l.total.add("pauses", 1)
			return err
		}
	}
	return fmt.Errorf("signals: USR2 did not reach a command that was stopped for a while")
}

// watch runs lameduck watch beside the command for a moment.
func (l *life) watch() error {
	l.total.add("watches", 1)
	return l.runs("%s watch --json", l.init)
}

// hook runs lameduck hold as a preStop hook would.
func (l *life) hook() error {
	l.total.add("hooks", 1)
	return l.runs("%s hold --until=settled --delay=0.1 --quiet-for=0.1 --max-delay=0.5", l.init)
}

// checks sends health checks, and now and then hangs up before the answer.
func (l *life) checks() error {
	for range 1 + l.rnd.IntN(20) {
		l.total.add("health checks", 1)
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.health))
		if err != nil {
			return fmt.Errorf("cannot connect for a health check: %w", err)
		}
		conn.SetDeadline(time.Now().Add(patience))
		if l.rnd.IntN(4) > 0 {
			err = l.answered(conn)
		}
		conn.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *life) answered(conn net.Conn) error {
	want := "HTTP/1.1 200"
	if l.passes {
		want = "pong"
	}
	fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
	switch line, err := bufio.NewReader(conn).ReadString('\n'); {
	case err != nil:
		return fmt.Errorf("the health check was not answered: %w", err)
	case !strings.HasPrefix(line, want):
		return fmt.Errorf("the health check was answered with %q", line)
	}
	return nil
}

// stop ends a life in a way chosen at random.
func (l *life) stop() error {
	way := l.rnd.IntN(5)
	if !l.adaptive && way < 3 {
		way = 3
	}
	switch way {
	case 0, 1: // a second TERM or INT cuts the hold short
		if err := l.holds(); err != nil {
			return err
		}
		time.Sleep(1100 * time.Millisecond) // within a second a repeat counts as the same signal
		l.total.add("holds cut short", 1)
		l.signal([]unix.Signal{unix.SIGTERM, unix.SIGINT}[way])
	case 2: // the command exits during the hold
		if err := l.holds(); err != nil {
			return err
		}
		l.total.add("exits during a hold", 1)
		fmt.Fprintln(l.stdin, "exit")
	case 3:
		l.load.end()
		l.total.add("stops", 1)
		l.signal(unix.SIGTERM)
	case 4: // the command ignores TERM
		return l.deaf()
	}
	return l.leaves()
}

// holds begins a hold, which lasts since the load goes on, and acts meanwhile.
func (l *life) holds() error {
	l.signal(unix.SIGTERM)
	if _, err := l.err.wait("holding"); err != nil {
		return err
	}
	for _, act := range []func(*life) error{(*life).orphans, (*life).storm} {
		if err := act(l); err != nil {
			return err
		}
	}
	return check(l.pid, l.base, true)
}

// deaf stops a command that ignores TERM.
func (l *life) deaf() error {
	l.total.add("stops ignored", 1)
	if _, err := l.ask("deaf", "deaf"); err != nil {
		return err
	}
	l.load.end()
	before, err := l.arrived()
	if err != nil {
		return err
	}
	l.signal(unix.SIGTERM)
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		now, err := l.arrived()
		switch {
		case err != nil:
			return err
		case now[syscall.SIGTERM] > before[syscall.SIGTERM]:
			return l.survives()
		case time.Now().After(end):
			return fmt.Errorf("TERM did not reach the command")
		}
	}
}

// survives acts after a stop that the command has ignored. lameduck samples until the
// end, for the report, with the two sockets of the hold; no other descriptor remains.
func (l *life) survives() error {
	l.base.descriptors += 2
	for _, act := range []func(*life) error{(*life).storm, (*life).orphans} {
		if err := act(l); err != nil {
			return err
		}
	}
	if err := check(l.pid, l.base, false); err != nil {
		return err
	}
	fmt.Fprintln(l.stdin, "exit")
	return l.leaves()
}
