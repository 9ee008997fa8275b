package hold_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

// TestCloseIdle: kept connections are closed while they are idle, and a hold that they would
// prolong ends by silence. A request in flight is not cut, nor an idle connection that is not
// used, nor one that the server opened. (TestCloseIdleHook runs as root.)
func TestCloseIdle(t *testing.T) {
	t.Parallel()
	n := box.NewNetwork(t)
	database := n.Neighbor(t)
	b := box.Setup{Faults: "uid=65534", Network: n}.Catch(t, "--until=quiet --close-idle --quiet-for=2 --grace-period=40", "127.0.0.1:0")
	b.Do("talk " + database.Addr("127.0.0.1"))
	slow, unused := b.Dial("127.0.0.1"), b.Dial("127.0.0.1")
	slow.Ask("hello")
	fmt.Fprintln(slow, "wait")
	unused.Ask("hello")
	allClosed := b.Talkers(6)
	b.Trigger()
	allClosed() // sooner or later, as the machine is idle or busy
	b.WantHolding("a request is in flight")
	last := time.Now()
	b.Send("reply")
	slow.AwaitReply()
	r := b.WantHold(last, 2*time.Second-early, "quiet")
	if r.HeldMS < 3700 || r.ClosedIdle != 6 || r.CameBack != 0 || r.Open != 2 {
		t.Errorf("report %+v, want 6 closed connections, and 2 open", r)
	}
}

// TestCloseIdleUnnoticed: few connections are closed of clients that notice the end when they send
// the next request, which is lost. The hold ends as without the flag.
func TestCloseIdleUnnoticed(t *testing.T) {
	b := box.Setup{Network: box.NewNetwork(t)}.Catch(t, flags+"--until=quiet --close-idle", "127.0.0.1:0")
	clients := make([]*box.Client, 6)
	for i := range clients {
		clients[i] = b.Dial("127.0.0.1")
	}
	r := wantKept(b, 250*time.Millisecond, func() { // all at once, lest one be used just after it was closed
		var asking sync.WaitGroup
		for _, c := range clients {
			asking.Go(func() { c.TryAsk(box.Later) })
		}
		asking.Wait()
	})
	if r.ClosedIdle == 0 || r.ClosedIdle > 3 {
		t.Errorf("report %+v, want one to three closed connections", r)
	}
}

// TestCloseIdleHook: a hook closes the connections of the container's main process.
func TestCloseIdleHook(t *testing.T) {
	h := startHost(t, box.Setup{}, nil, "127.0.0.1:0")
	allClosed := h.Talkers(3)
	h.hook("$L hold --close-idle --quiet-for=2 --grace-period=40")
	allClosed()
	h.wantHook(0, max(4*time.Second-early, time.Since(h.start)+time.Second), "quiet")
	if r := h.Report(); r.ClosedIdle != 3 {
		t.Errorf("report %+v, want 3 closed connections", r)
	}
}

// TestCloseIdleRefused: where the kernel refuses, one warning says why, and the hold ends as
// without the flag.
func TestCloseIdleRefused(t *testing.T) {
	t.Parallel()
	s := box.Setup{Faults: "deny=438:1", Network: box.NewNetwork(t)} // pidfd_getfd(2)
	b := s.Catch(t, flags+"--until=quiet --close-idle", "127.0.0.1:0")
	c := b.Dial("127.0.0.1")
	if r := wantKept(b, 80*time.Millisecond, func() { c.Ask(box.Later) }); r.ClosedIdle != 0 {
		t.Errorf("report %+v, want no closed connection", r)
	}
	b.WantWarning("--close-idle (LAMEDUCK_CLOSE_IDLE) closes no connection: the seccomp profile forbids")
}
