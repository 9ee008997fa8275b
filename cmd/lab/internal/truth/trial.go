package truth

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// trial is one run of a case.
type trial struct {
	c        *truthCase
	lameduck string
	dir      string // for the server's files
	plan     []planned
	clients  int

	cmd     *exec.Cmd
	said    lines
	network *os.File
	gone    chan struct{} // closed when the server's PID 1 has exited
	term    time.Time     // when TERM is planned: the script's zero
	sent    time.Time     // when TERM was sent
	tally
}

// planned is a function with its moment relative to TERM.
type planned struct {
	at  time.Duration
	run func()
}

// tally has the answers and losses of the requests that count, and all connections.
type tally struct {
	mu   sync.Mutex
	last time.Duration // when the last answer came
	lost []string
	held []net.Conn // of all clients
	err  error      // the script's first
	kept keptTally
}

// startPatience is how long a server may take to listen; settle is the time between that
// and the script's first moment.
const (
	startPatience = 60 * s
	settle        = 300 * ms
)

func newTrial(c *truthCase) *trial {
	t := &trial{c: c, gone: make(chan struct{})}
	c.script(t)
	return t
}

// at plans f for a moment relative to TERM. When the server has gone, functions whose
// moment has not come run at once: their requests are lost.
func (t *trial) at(moment time.Duration, f func()) {
	t.plan = append(t.plan, planned{moment, f})
}

// every plans f for from, from+period and so on, before to. A call that lasts longer than
// the period delays the next one. The last call after the server has gone shows whether
// requests are lost.
func (t *trial) every(from, to, period time.Duration, f func()) {
	t.at(from, func() {
		for moment := from; moment < to; moment += period {
			gone := !t.wait(moment)
			f()
			if gone {
				return
			}
		}
	})
}

// wait returns at a moment relative to TERM, or returns false when the server has gone.
func (t *trial) wait(moment time.Duration) bool {
	return t.sleep(time.Until(t.term.Add(moment)))
}

// sleep returns after d, or returns false when the server has gone.
func (t *trial) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.gone:
		return false
	}
}

// lead returns the time from the beginning of the script to TERM.
func (t *trial) lead() time.Duration {
	lead := time.Duration(0)
	for _, p := range t.plan {
		lead = max(lead, -p.at)
	}
	return lead + settle
}

// real does a request that counts.
func (t *trial) real(request func() error) {
	err := request()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Since(t.term)
	if err != nil {
		t.lost = append(t.lost, fmt.Sprintf("%s: %v", seconds(now), err))
		return
	}
	t.last = max(t.last, now)
}

// check notes an error that means that the script could not be played.
func (t *trial) check(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

// spare notes the error of a request that does not count, unless the server goes: such a
// request may be cut, but must not fail before.
func (t *trial) spare(err error) {
	if err != nil && t.sleep(3*s) {
		t.check(fmt.Errorf("a request failed while the server ran: %w", err))
	}
}

// play runs the script and returns when lameduck has exited or was killed.
func (t *trial) play() error {
	if err := t.start(); err != nil {
		t.kill()
		return err
	}
	t.term = time.Now().Add(t.lead())
	var all sync.WaitGroup
	for _, p := range t.plan {
		all.Go(func() {
			t.wait(p.at)
			p.run()
		})
	}
	if !t.sleep(time.Until(t.term)) {
		return fmt.Errorf("the server exited before TERM:\n%s", &t.said)
	}
	err := t.stop()
	finish(&all)
	t.mu.Lock()
	defer t.mu.Unlock()
	return cmp.Or(err, t.err)
}

// start starts the upstream and the server.
func (t *trial) start() error {
	at, err := t.place()
	if err != nil {
		return err
	}
	words, err := t.c.server.command(at)
	if err != nil {
		return err
	}
	ours := append([]string{t.lameduck, "--log-format=json", "--termination-log=" + t.terminationLog()}, t.c.words()...)
	if err := os.WriteFile(t.terminationLog(), nil, 0o644); err != nil {
		return err
	}
	if err := t.launch(append(append(ours, "--"), words...)); err != nil {
		return fmt.Errorf("%w\n%s", err, &t.said)
	}
	if err := serveUpstream(); err != nil {
		return err
	}
	return t.ready()
}

func (t *trial) terminationLog() string { return t.dir + "/termination-log" }

// stop sends TERM and returns when the server has gone. A server that is not graceful gets
// KILL soon after the signal.
func (t *trial) stop() error {
	t.sent = time.Now()
	if err := t.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	limit := time.After(holdPatience)
	for {
		select {
		case <-t.gone:
			return nil
		case <-limit:
			t.kill()
			return nil
		case <-time.After(250 * ms):
		}
		if readReport(t.terminationLog()) != nil && !t.c.graceful {
			t.sleep(500 * ms)
			t.kill()
			return nil
		}
	}
}

// holdPatience is more than the grace period that any case gives.
const holdPatience = 130 * s

func (t *trial) kill() {
	if t.cmd == nil || t.cmd.Process == nil {
		return
	}
	t.cmd.Process.Kill()
	<-t.gone
}

// finish waits for the script's functions, some of which may wait for answers forever.
func finish(all *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * s):
	}
}

// serverAddr is where clients connect.
func serverAddr() string { return net.JoinHostPort(serverEnd.String(), fmt.Sprint(port)) }
