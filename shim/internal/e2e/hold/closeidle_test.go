package hold_test

import (
	"fmt"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

// TestCloseIdle: kept connections are closed while they are idle, by a user without privileges too,
// and a hold that they would prolong ends by silence. A request in flight is not cut, nor
// an idle connection that is not used, nor one that the server opened.
func TestCloseIdle(t *testing.T) {
	t.Parallel()
	const talkers = 24
	n := box.NewNetwork(t)
	database := n.Neighbor(t)
	b := box.Setup{Faults: "uid=65534", Network: n}.Catch(t, "--until=quiet --close-idle --quiet-for=2 --grace-period=40",
		"127.0.0.1:0")
	b.Do("talk " + database.Addr("127.0.0.1"))
	slow, unused := b.Dial("127.0.0.1"), b.Dial("127.0.0.1")
	slow.Ask("hello")
	fmt.Fprintln(slow, "wait")
	unused.Ask("hello")
	allClosed := b.Talkers(talkers)
	b.Play("TERM / err holding")
	allClosed() // sooner or later, as the machine is idle or busy
	b.WantHolding("a request is in flight")
	b.Send("reply")
	slow.AwaitReply()
	b.Play("got TERM / > exit 7 / exits 7 / ended quiet / warns")
	if r := b.Report(); r.ClosedIdle != talkers || r.CameBack != 0 || r.Open != 2 {
		t.Errorf("report %+v, want %d closed connections, and 2 open", r, talkers)
	}
}
