package box

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// Binary is the built lameduck.
var Binary = testutil.Path("lameduck")

// Box is a program between pipes: as a rule lameduck as PID 1 of new namespaces.
type Box struct {
	T        *testing.T
	Cmd      *exec.Cmd
	Stdin    io.WriteCloser
	Out, Err *Lines
	TTY      *os.File          // the keyboard's side of a terminal
	Port     string            // of the first server of the catch helper
	Acts     map[string]func() // what a session may name; see Play
	network  *Network
	began    time.Time // just before the start
}

// Setup says how a program is started. The zero value is PID 1 of new namespaces.
type Setup struct {
	Faults   string              // see stage
	Env      []string            // beside PATH; lameduck writes JSON
	Init     string              // a program in place of lameduck
	Network  *Network            // nil: the network of all tests of the package
	Outside  bool                // an ordinary process
	Change   func(cmd *exec.Cmd) // called before the start
	Terminal bool                // a new terminal in place of pipes
}

// Needs skips a test where one of the programs is not installed.
func Needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
}

// NeedsRoot skips a test that changes to another user.
func NeedsRoot(t *testing.T) {
	t.Helper()
	ids, _ := os.ReadFile("/proc/self/uid_map")
	if os.Getuid() != 0 || !slices.Equal(strings.Fields(string(ids)), []string{"0", "0", "4294967295"}) {
		t.Skip("needs root, outside of user namespaces")
	}
}

// Helper returns the command line of a helper.
func Helper(name string, args ...string) []string {
	exe, _ := os.Executable()
	return append([]string{exe, "helper", name}, args...)
}

// Start starts a program.
func (s Setup) Start(t *testing.T, words ...string) *Box {
	t.Helper()
	attr := &syscall.SysProcAttr{Setsid: s.Outside || s.Terminal, Setctty: s.Terminal}
	if strings.Contains(s.Faults, "uid=") {
		NeedsRoot(t)
	}
	if !s.Outside {
		netns.Need(t)
		attr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
		words = Helper("stage", append([]string{s.Faults}, words...)...)
	}
	b := &Box{T: t, Cmd: exec.Command(words[0], words[1:]...), network: s.Network}
	b.Cmd.SysProcAttr = attr
	b.Cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", "LAMEDUCK_LOG_FORMAT=json"},
		s.Env...)
	if s.Terminal {
		tty := b.openTerminal()
		defer tty.Close()
	} else {
		b.Stdin = testutil.Must(b.Cmd.StdinPipe())
		b.Out = newLines(t, testutil.Must(b.Cmd.StdoutPipe()))
		b.Err = newLines(t, testutil.Must(b.Cmd.StderrPipe()))
	}
	if s.Change != nil {
		s.Change(b.Cmd)
	}
	var err error
	b.began = time.Now()
	b.network.Do(func() { err = b.Cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Cmd.Process.Kill() })
	return b
}

// Boot starts lameduck, or another init, with flags and a command.
func (s Setup) Boot(t *testing.T, flags string, command ...string) *Box {
	t.Helper()
	return s.Start(t, slices.Concat([]string{cmp.Or(s.Init, Binary)}, Words(flags), command)...)
}

// Catch starts lameduck with flags and the catch helper, and waits until the helper is
// ready.
func (s Setup) Catch(t *testing.T, flags string, addresses ...string) *Box {
	t.Helper()
	b := s.Boot(t, flags, Helper("catch", addresses...)...)
	b.Ready()
	return b
}

// Words splits a line at blanks. Single quotes keep blanks, and quotes in an argument.
func Words(line string) (words []string) {
	begun, quoted := false, false
	for _, c := range line {
		switch {
		case c == '\'':
			quoted = !quoted
		case c == ' ' && !quoted:
			begun = false
			continue
		}
		if !begun {
			words = append(words, "")
			begun = true
		}
		if c != '\'' {
			words[len(words)-1] += string(c)
		}
	}
	return words
}

// Ready waits until the command is ready, and notes its port.
func (b *Box) Ready() {
	b.T.Helper()
	b.Out.Wait("ready")
	if port, ok := strings.CutPrefix(b.Out.All()[0].Text, "port "); ok {
		b.Port = port
	}
}

// Pid returns lameduck's pid.
func (b *Box) Pid() int { return b.Cmd.Process.Pid }

// Signal sends s to lameduck.
func (b *Box) Signal(s sig.Signal) {
	b.T.Helper()
	if err := unix.Kill(b.Pid(), unix.Signal(s)); err != nil {
		b.T.Errorf("cannot send %v: %v", s, err)
	}
}

// Stop sends TERM, and returns when.
func (b *Box) Stop() time.Time {
	b.T.Helper()
	start := time.Now()
	b.Signal(sig.TERM)
	return start
}

// Trigger is Stop, and waits until the hold has begun.
func (b *Box) Trigger() time.Time {
	b.T.Helper()
	start := b.Stop()
	b.Err.Wait("holding")
	return start
}

// Send writes a line to the command's standard input.
func (b *Box) Send(line string) { fmt.Fprintln(b.Stdin, line) }

// Do has the catch helper obey a command, and waits until it has.
func (b *Box) Do(command string) {
	b.T.Helper()
	b.Send(command)
	b.Out.Wait("did " + command)
}

// WaitExit waits until the program has exited and its output is closed, and returns the
// exit code.
func (b *Box) WaitExit() int {
	b.T.Helper()
	timer := time.AfterFunc(testutil.Patience, func() {
		b.Cmd.Process.Kill()
		b.Out.from.Close() // another process may have the pipes open
		b.Err.from.Close()
	})
	<-b.Out.EOF
	<-b.Err.EOF
	b.Cmd.Wait()
	if !timer.Stop() {
		b.T.Errorf("no exit within %v; stderr:\n%v", testutil.Patience, b.Err.All())
	}
	return b.Cmd.ProcessState.ExitCode()
}

// WantExit is WaitExit with a check of the exit code.
func (b *Box) WantExit(code int) {
	b.T.Helper()
	if got := b.WaitExit(); got != code {
		b.T.Errorf("exit code %d, want %d; stderr:\n%v", got, code, b.Err.All())
	}
}

// Exit makes the catch helper exit with 7, and wants lameduck to do so within 2 s.
func (b *Box) Exit() {
	b.T.Helper()
	start := time.Now()
	b.Send("exit 7")
	b.WantExit(7)
	if took := time.Since(start); took > 2*time.Second {
		b.T.Errorf("exited %v after the command; stderr:\n%v", took, b.Err.All())
	}
}

// Slack is how late a hold may end on a busy machine.
const Slack = 4 * time.Second

// WantHold wants TERM to reach the command the given time after since, at most Slack later,
// ends the command, and checks why the hold has ended. A hold to the ceiling may end at a
// lull in its last second, or last fifth.
func (b *Box) WantHold(since time.Time, least time.Duration, reason string) Report {
	b.T.Helper()
	if reason == "ceiling" {
		least -= min(time.Second, least/5)
	}
	got := b.Out.Wait("got TERM").At.Sub(since)
	b.Exit()
	r := b.Report()
	if r.Ended != reason || got < least || got > least+Slack {
		b.T.Errorf("held for %v, want %v until %s; report: %+v", got, least, reason, r)
	}
	return r
}

// WantHolding wants the hold to go on; cause says why it must.
func (b *Box) WantHolding(cause string) {
	b.T.Helper()
	if slices.Contains(b.Out.Texts(), "got TERM") {
		b.T.Errorf("the hold has ended although %s", cause)
	}
}

// Busy calls what, which is traffic, at every interval for twice the silence that would end the
// hold, wants the hold to go on, and returns when the last call began. It skips the test if the machine
// has kept two calls apart for longer than that silence.
func (b *Box) Busy(quiet, every time.Duration, what func()) (last time.Time) {
	b.T.Helper()
	longest := time.Duration(0)
	last = time.Now()
	end := Repeat(every, func() {
		before := last
		last = time.Now()
		what()
		longest = max(longest, time.Since(before))
	})
	time.Sleep(2 * quiet)
	holding := !slices.Contains(b.Out.Texts(), "got TERM")
	end()
	if longest = max(longest, time.Since(last)); longest > quiet {
		b.T.Skipf("the machine stopped the clients for %v", longest)
	}
	if !holding {
		b.T.Error("the hold has ended although the traffic goes on")
	}
	return last
}

// Addr returns the address of the box's server on a host.
func (b *Box) Addr(host string) string { return net.JoinHostPort(host, b.Port) }

// Dial connects to the box's server, from within its network.
func (b *Box) Dial(host string) *Client {
	b.T.Helper()
	return b.network.Dial(b.T, b.Addr(host))
}

// ShortConn makes one request on a connection, and closes the connection.
func (b *Box) ShortConn(host string) {
	b.T.Helper()
	c := b.Dial(host)
	c.Ask("hello")
	c.Close()
}

// Get sends a request to an address of the box's network; see Network.Get.
func (b *Box) Get(address string) string { return b.network.Get(address) }
