package procfs

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestTrace: a process that sleeps leaves the same trace until it has run, and a signal that it cannot handle
// yet shows. Listeners are counted.
func TestTrace(t *testing.T) {
	var proc Root
	cat := exec.Command("cat")
	in := testutil.Must(cat.StdinPipe())
	out := testutil.Must(cat.StdoutPipe())
	testutil.Must(0, cat.Start())
	defer cat.Wait()
	defer cat.Process.Kill()
	if family, err := proc.Descendants(); err != nil || len(family) != 1 || family[0].PID != cat.Process.Pid {
		t.Errorf("%+v, %v; want cat alone", family, err)
	}
	trace := func() sig.Trace { return proc.Trace(cat.Process.Pid, nil) }
	idle := func() bool { return trace().Idle }
	testutil.Eventually(t, "cat sleeps", idle)
	before := trace()
	if again := trace(); again != before || !before.Known || before.Listeners != 0 {
		t.Errorf("%+v, and then %+v", before, again)
	}
	in.Write([]byte("x"))
	out.Read(make([]byte, 1))
	testutil.Eventually(t, "cat sleeps", idle)
	if after := trace(); after.Switches <= before.Switches {
		t.Errorf("cat has run: %+v, before %+v", after, before)
	}
	cat.Process.Signal(syscall.SIGSTOP)
	cat.Process.Signal(syscall.SIGTERM)
	testutil.Eventually(t, "a signal waits", func() bool { return !idle() })
	if gone := proc.Trace(1<<30, nil); gone.Known || gone.Idle {
		t.Errorf("no process: %+v", gone)
	}
	count := func() int { return proc.Trace(os.Getpid(), proc.Listening()).Listeners }
	listeners := count()
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	connected := testutil.Must(net.Dial("tcp", l.Addr().String()))
	defer connected.Close()
	more := count()
	l.Close()
	if less := count(); more != listeners+1 || less != listeners {
		t.Errorf("%d listeners, with one more %d, and %d when it was closed", listeners, more, less)
	}
}

// TestPoorStatus: a kernel that does not count switches, or shows no pending signals, proves nothing.
func TestPoorStatus(t *testing.T) {
	const rich = "Name:\tx\nState:\tS (sleeping)\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n" +
		"voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n"
	for _, without := range []string{"", "State", "SigPnd:\t0000000000000000\nShdPnd", "voluntary_ctxt_switches"} {
		trace := sig.Trace{Idle: true}
		addThread(&trace, strings.Replace(rich, "\n"+without+":", "\nother:", 1))
		if trace.Idle != (without == "") {
			t.Errorf("without %q: %+v", without, trace)
		}
	}
}

// TestFirst: which process runs the container of a hook.
func TestFirst(t *testing.T) {
	for _, cells := range tables.Rows(`
		# processes: PID, start, control group; the hook is in /pod/app | first
		1 5 /pod/app, 9 7 /pod/app                    | 1
		1 5 /pod/pause, 9 7 /pod/app, 8 6 /pod/other, 12 8 /pod/app | 9
		1 5 /pod/pause, 12 6 /pod/app/below, 9 7 /pod/app | 12
		1 5 /pod/pause, 8 6 /pod/other                | 0
	`) {
		own := fmt.Sprint(os.Getpid())
		text := ""
		for process := range strings.SplitSeq(own+" 9 /pod/app, "+cells[0], ", ") {
			fields := strings.Fields(process)
			text += fmt.Sprintf("== %s/cgroup\n0::%s\n== %[1]s/stat\n%[1]s (x) S 0 0%[3]s %[4]s 0 0\n",
				fields[0], fields[2], strings.Repeat(" 1", 16), fields[1])
		}
		root := fakeProc(t, text+"== self\n->"+own)
		if got := fmt.Sprint(root.First()); got != cells[1] {
			t.Errorf("%s: %s", cells, got)
		}
	}
}
