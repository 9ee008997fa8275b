package faults_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestPoor: a stop with a hold works in environments that lack files, privileges,
// descriptors or system calls, alone and with an alive file, --wait-gone, --on-stop, health
// checks and a schedule.
func TestPoor(t *testing.T) {
	programs := map[string][]string{"TRAP": trap}
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
		has := func(fault string) bool { return strings.Contains(c["faults"], fault) }
		c["on"], c["env"] = "network, shared", "GODEBUG=asyncpreemptoff=1"
		ready, goesOn, observer := "ready asyncpreemptoff=1", "got TERM / > / ", "never"
		if has("no-env") {
			ready = "ready / never asyncpreemptoff"
		}
		if has("no-stdin") { // the command reads the end of file
			goesOn = ""
		}
		if has("no-proc") {
			observer = "err"
		}
		end := goesOn + `exits 7 / ended elapsed / warns / ` + observer + ` "observer":"none"`
		c["line"], c["session"] = "LAMEDUCK -d 1 --log-format=json TRAP", ready+" / TERM / "+end
		c.Play(t, programs)
		if !has("nofile") && !has("read-only") { // they need more
			c["line"] = "LAMEDUCK -d 1 --log-format=json --grace-period=30 --health=127.0.0.1:9000 --health-during=fail --on-stop='ASKS' --preset=auto " +
				"--stop-schedule=TERM/20/QUIT --kill-after=25 --alive-file=DIR/alive --wait-gone=DIR/none TRAP"
			c["line"] = strings.ReplaceAll(c["line"], "ASKS", asks)
			c["session"] = ready + " / TERM / 503 / " + end
			c.Play(t, programs)
		}
	}
}

// asks asks for health.
const asks = `bash -c "exec 3<>/dev/tcp/127.0.0.1/9000; printf \"GET / HTTP/1.1\\r\\n\\r\\n\" >&3; cat <&3"`

// broken has a program write its errors to a pipe or a socket that is full, or has no reader.
const broken = `
import os, signal, socket, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
how, what = sys.argv[1:3]
reader, ours = os.pipe() if what == "pipe" else [s.detach() for s in socket.socketpair()]
os.set_blocking(ours, False)
try:
    while how == "full": os.write(ours, bytes(1000))
except BlockingIOError: pass
os.set_blocking(ours, True)
if how == "full": os.set_inheritable(reader, True)
else: os.close(reader)
os.dup2(ours, 2)
os.execvp(sys.argv[3], sys.argv[3:])`

// TestStderr: no failure of standard error delays a stop. The SIGPIPE of lameduck's own
// write is not passed on to the command; a SIGPIPE from another process is. (Once a WINCH is passed on, lameduck
// has taken its own pending PIPEs.)
func TestStderr(t *testing.T) {
	for _, c := range box.Table(`
		case          | needs   | faults    | line
		full pipe     | python3 |           | BROKEN full pipe
		closed pipe   | python3 |           | BROKEN closed pipe
		full socket   | python3 |           | BROKEN full socket
		closed socket | python3 |           | BROKEN closed socket
		dev full      |         |           | sh -c 'exec "$@" 2>/dev/full' sh
		full disk     |         |           | sh -c 'mount -t tmpfs -o nr_blocks=1 tmpfs /mnt; exec 2>/mnt/log; head -c 65536 /dev/zero >&2; exec "$@"' sh
		no descriptor |         | no-stderr |
	`) {
		c["line"] += " LAMEDUCK -d 1 --log-level=debug CATCH"
		c["session"] = "ready" + strings.Repeat(" / WINCH / got WINCH", 100) +
			" / TERM / got TERM / WINCH / got WINCH / PIPE / got PIPE / > exit 7 / exits 7 / once got PIPE"
		c.Play(t, map[string][]string{"BROKEN": {"python3", "-c", broken}})
	}
}

// TestStopped: a stopped command gets TERM and CONT.
func TestStopped(t *testing.T) {
	box.Sessions(t, nil, `
	line                | session
	LAMEDUCK -d 1 CATCH | ready / > killed STOP / state S T / TERM / got TERM / got CONT / > exit 7 / exits 7
	`)
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
