package faults_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestPoor: a stop with a hold works in environments that lack files, privileges,
// descriptors or system calls, alone and with an alive file, --wait-gone, --on-stop, health
// checks and a schedule.
func TestPoor(t *testing.T) {
	for _, c := range box.Table(`
		case                    | faults
		read-only root          | read-only
		no environment          | no-env
		no privileges           | uid=65534
		a uid of nobody's       | uid=1000660000
		no standard input       | no-stdin
		no /proc                | no-proc
		no /proc, second stage  | no-proc,ignore=USR1
		no netlink              | no-netlink
		no privileges, no /proc | no-proc,uid=65534
		few descriptors         | nofile=4:16
		seccomp                 | seccomp
		all of it               | no-proc,read-only,no-env,ignore=CHLD,uid=65534,nofile=4:16,seccomp
	`) {
		faults := c["faults"]
		for _, neighbors := range []bool{false, true} {
			if neighbors && (strings.Contains(faults, "nofile") || strings.Contains(faults, "read-only")) {
				continue // they need more
			}
			t.Run(c["case"], func(t *testing.T) {
				t.Parallel()
				dir := testutil.Must(os.MkdirTemp("", "alive"))
				t.Cleanup(func() { os.RemoveAll(dir) })
				os.Chmod(dir, 0o777)
				health := box.FreeAddr()
				flags := "-d 1 --log-format=json"
				if neighbors {
					flags += " --grace-period=30 --on-stop='/bin/sleep 0.1' --health-during=fail --preset=auto --stop-schedule=TERM/20/QUIT --kill-after=25" +
						" --alive-file=" + dir + "/alive --wait-gone=" + dir + "/none --health=" + health
				}
				b := box.Setup{Faults: faults, Env: []string{"GODEBUG=asyncpreemptoff=1"}, Network: box.NewNetwork(t)}.Boot(t,
					flags, trap...)
				b.Ready()
				passed := strings.Contains(b.Out.Texts()[0], "asyncpreemptoff=1")
				if passed == strings.Contains(faults, "no-env") {
					t.Errorf("GODEBUG reached the command: %v", passed)
				}
				start := b.Stop()
				if neighbors {
					testutil.Eventually(t, "health checks fail", func() bool { return b.Get(health) == "503 stopping" })
				}
				if strings.Contains(faults, "no-stdin") { // the command reads the end of file
					b.WantExit(7)
				} else {
					b.WantHold(start, time.Second, "elapsed")
				}
				b.WantWarning("")
				if r := b.Report(); (r.Observer == "none") != strings.Contains(faults, "no-proc") || r.ExitCode != 7 ||
					r.GraceAssumed == neighbors {
					t.Errorf("report %+v", r)
				}
			})
		}
	}
}

// TestStderr: no failure of standard error delays a stop. The SIGPIPE of lameduck's own
// write is not passed on to the command; a SIGPIPE from another process is.
func TestStderr(t *testing.T) {
	run := func(name string, test func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
	}
	for _, kind := range []string{"pipe", "socket"} {
		for how, fail := range map[string]func(t *testing.T, r, w *os.File){
			"full":   func(t *testing.T, r, w *os.File) { box.FillPipe(t, w) },
			"closed": func(t *testing.T, r, w *os.File) { r.Close() },
		} {
			run(how+" "+kind, func(t *testing.T) {
				r, w := pipeEnds(t, kind)
				fail(t, r, w)
				stopWithStderr(t, "", w)
			})
		}
	}
	run("dev full", func(t *testing.T) {
		w := testutil.Must(os.OpenFile("/dev/full", os.O_WRONLY, 0))
		defer w.Close()
		stopWithStderr(t, "", w)
	})
	run("full disk", func(t *testing.T) {
		testutil.OnTmpfs(t, "nr_blocks=1,mode=755", func(dir string) {
			w := testutil.Must(os.Create(dir + "/log"))
			defer w.Close()
			var err error
			for err == nil {
				_, err = w.Write(make([]byte, os.Getpagesize()))
			}
			stopWithStderr(t, "", w)
		})
	})
	run("no descriptor", func(t *testing.T) { stopWithStderr(t, "no-stderr", nil) })
}

// stopWithStderr tests a stop with w as standard error.
func stopWithStderr(t *testing.T, faults string, w *os.File) {
	b := box.Setup{Faults: faults, Change: func(cmd *exec.Cmd) {
		if w != nil {
			cmd.Stderr = w
		}
	}}.Catch(t, "-d 1 --log-level=debug")
	for i := range 100 {
		b.Signal(sig.WINCH)
		b.Out.WaitNth(i+1, "got WINCH")
	}
	wantTERM(b, func() {})
	b.Signal(sig.WINCH) // once it is passed on, lameduck has taken its own pending PIPEs
	b.Out.WaitNth(101, "got WINCH")
	b.Signal(sig.PIPE)
	b.Out.Wait("got PIPE")
	b.Exit()
	if n := b.Out.Count("got PIPE"); n != 1 {
		t.Errorf("the command got PIPE %d times, want 1", n)
	}
}

// TestStopped: a stopped command gets TERM and CONT.
func TestStopped(t *testing.T) {
	t.Parallel()
	b := box.Catch(t, "-d 1")
	command := b.Child()
	b.Send("killed STOP")
	box.AwaitState(t, command, "T")
	wantTERM(b, func() {})
	b.Out.Wait("got CONT")
	b.Exit()
}

// TestStoppedInHold: where lameduck itself is stopped beyond the end of the hold, CONT ends the
// hold, after one more sample: the report counts connections opened meanwhile.
func TestStoppedInHold(t *testing.T) {
	t.Parallel()
	b := box.Setup{Network: box.NewNetwork(t)}.Catch(t, "-d 1", "127.0.0.1:0")
	start := b.Trigger()
	b.Signal(sig.STOP)
	b.Dial("127.0.0.1").Ask("hello")
	time.Sleep(time.Until(start.Add(2500 * time.Millisecond))) // the subject: lameduck is stopped
	b.WantHolding("lameduck was stopped")
	b.Signal(sig.CONT)
	if r := b.WantHold(start, 2500*time.Millisecond, "elapsed"); r.Open != 1 {
		t.Errorf("report %+v, want one open connection", r)
	}
}
