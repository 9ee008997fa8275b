package hold_test

import (
	"fmt"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestCloseIdle: kept connections are closed while they are idle, by a user without privileges too,
// and a hold that they would prolong ends by silence. A request in flight is not cut, nor
// an idle connection that is not used, nor one that the server opened. Where the kernel refuses, one
// warning says why.
func TestCloseIdle(t *testing.T) {
	t.Parallel()
	const hold = "--until=quiet --close-idle --quiet-for=2 --grace-period=40"
	for _, c := range box.Table(`
		case    | faults       | reason        | warning
		nobody  | uid=65534    | quiet         |
		refused | deny=438:1   | interrupt     | --close-idle (LAMEDUCK_CLOSE_IDLE) closes no connection: the seccomp profile forbids
	`) { // 438 is pidfd_getfd(2)
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			n := box.NewNetwork(t)
			database := n.Neighbor(t)
			b := box.Setup{Faults: c["faults"], Network: n}.Catch(t, hold, "127.0.0.1:0")
			b.Do("talk " + database.Addr("127.0.0.1"))
			slow, unused := b.Dial("127.0.0.1"), b.Dial("127.0.0.1")
			slow.Ask("hello")
			fmt.Fprintln(slow, "wait")
			unused.Ask("hello")
			allClosed, closed := b.Talkers(24), 24
			b.Trigger()
			if c["warning"] == "" {
				allClosed() // sooner or later, as the machine is idle or busy
			} else {
				closed = 0
				b.Err.Wait(c["warning"])
			}
			b.WantHolding("a request is in flight")
			b.Send("reply")
			slow.AwaitReply()
			if c["warning"] != "" {
				b.Signal(sig.INT)
			}
			b.Out.Wait("got TERM")
			b.Exit()
			if r := b.Report(); r.Ended != c["reason"] || r.ClosedIdle != closed || closed > 0 && (r.CameBack != 0 || r.Open != 2) {
				t.Errorf("report %+v, want %s, %d closed connections, and 2 open", r, c["reason"], closed)
			}
			b.WantWarning(c["warning"])
		})
	}
}
