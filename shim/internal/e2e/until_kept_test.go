package e2e

import (
	"fmt"
	"testing"
	"time"
)

// Tests of clients that never let go: bytes move on connections from before the stop, and
// no new connection comes.

// keptFlags make a hold among such clients last for kept.
var keptFlags = []string{"--quiet-for=0.4", "--grace-period=30"}

const kept = 3200 * time.Millisecond // eight times --quiet-for

// bootKept boots a program with three clients, each of which makes a request every 50 ms
// until the end of the test.
func bootKept(t *testing.T, stage, until string, flags ...string) *app {
	t.Helper()
	t.Parallel()
	ns := newNamespace(t)
	a := ns.bootUntil(stage, until, append(keptFlags, flags...), helperCommand("app", "127.0.0.1:0")...)
	for range 3 {
		c := a.dial("127.0.0.1")
		c.ask("hello")
		t.Cleanup(repeatEvery(50*time.Millisecond, func() { fmt.Fprintln(c, "hello"); c.in.Scan() }))
	}
	return a
}

// TestKept: such clients hold for eight times --quiet-for, also for a user without
// privileges. A given floor is kept.
func TestKept(t *testing.T) {
	for user, stage := range users {
		t.Run(user, func(t *testing.T) {
			a := bootKept(t, stage, "quiet")
			a.wantHoldSince(a.trigger(), kept, "kept")
			a.wantOpen(3)
		})
	}
	t.Run("floor", func(t *testing.T) {
		a := bootKept(t, "stage", "quiet", "--delay=4")
		a.wantHoldSince(a.trigger(), 4*time.Second, "kept")
	})
}

// TestKeptNew: the time counts from the last new connection.
func TestKeptNew(t *testing.T) {
	a := bootKept(t, "stage", "quiet")
	a.trigger()
	var last time.Time
	repeatFor(kept/2, 130*time.Millisecond, func() {
		a.shortConn("127.0.0.1")
		last = time.Now()
	})
	a.wantHoldSince(last, kept-100*time.Millisecond, "kept")
}

// TestKeptSlow: a request in flight that has been silent for --quiet-for is waited for.
func TestKeptSlow(t *testing.T) {
	a := bootKept(t, "stage", "quiet")
	c := a.dial("127.0.0.1")
	c.ask("hello")
	a.trigger()
	time.Sleep(kept / 2)    // the request is silent when the others alone would end the hold
	fmt.Fprintln(c, "slow") // 3 s
	c.awaitReply()
	a.wantHolding("a request was in flight")
	a.wantHoldSince(time.Now(), 0, "kept")
}

// TestKeptLetGo: when the clients let go, the silence ends the hold.
func TestKeptLetGo(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	a := ns.bootUntil("stage", "quiet", keptFlags, helperCommand("app", "127.0.0.1:0")...)
	c := a.dial("127.0.0.1")
	c.ask("hello")
	start := a.trigger()
	end := c.keepTalking(50 * time.Millisecond)
	time.Sleep(time.Until(start.Add(kept / 2))) // the traffic goes on
	end()
	a.wantHoldSince(start, kept/2+300*time.Millisecond, "quiet")
}

// TestKeptDrained: the condition drained waits for such clients.
func TestKeptDrained(t *testing.T) {
	a := bootKept(t, "stage", "drained", "--max-delay=5")
	a.wantHoldSince(a.trigger(), 5*time.Second, "ceiling")
}

// TestKeptHook: such clients end a preStop hook too.
func TestKeptHook(t *testing.T) {
	h := startHookHost(t, "server", nil)
	c := h.dial("127.0.0.1")
	c.ask("hello")
	end := c.keepTalking(50 * time.Millisecond)
	defer end()
	h.sendLine("hold --quiet-for=0.4 --grace-period=30")
	h.wantHookExit(0, kept, "(kept)")
	end()
	h.shutDown()
}
