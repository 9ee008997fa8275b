package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of requests in flight, which are never cut, and of connections that only seem to
// have a request in flight.

// TestUntilReceives: a connection on which the server never replies counts as in flight
// until --max-silence after the last byte received.
func TestUntilReceives(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	a := ns.bootUntil("stage", "quiet", append(quiet1sFlags, "--max-silence=3"), helperCommand("app", "127.0.0.1:0")...)
	c := a.dial("127.0.0.1")
	end := repeatEvery(50*time.Millisecond, func() { fmt.Fprintln(c, "-a.metric:1|c") })
	a.trigger()
	time.Sleep(2 * time.Second) // the client's traffic goes on
	end()
	a.wantHolding("the server had just received bytes")
	a.wantHoldSince(time.Now(), 2800*time.Millisecond, "quiet")
	a.wantGivenUp(1, "3 s")
}

// TestUntilIdlePool: idle keep-alive connections do not prolong the hold, even if
// request, reply and acknowledgment fell into one jiffy, as with a client nearby. A slow
// request right after a fast one does, also with keep-alive probes and without quick
// acknowledgments.
func TestUntilIdlePool(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"app", "probing"} {
		pool := func(t *testing.T) *app {
			ns := newNamespace(t)
			a := ns.bootUntil("stage", "quiet", append(quiet1sFlags, "--max-silence=12"), helperCommand(server, "127.0.0.1:0")...)
			for range 5 {
				for !a.keepFastConn() {
				}
			}
			return a
		}
		t.Run(server+", idle", func(t *testing.T) {
			t.Parallel()
			a := pool(t)
			time.Sleep(1500 * time.Millisecond) // the server's kernel sends a keep-alive probe after a second
			a.wantHoldSince(a.trigger(), quiet1s-100*time.Millisecond, "quiet")
			a.wantOpen(5)
		})
		t.Run(server+", one waits", func(t *testing.T) {
			t.Parallel()
			a := pool(t)
			c := a.dial("127.0.0.1")
			c.ask("hello")
			fmt.Fprintln(c, "slow")
			time.Sleep(100 * time.Millisecond) // the kernel delays an acknowledgment by up to 40 ms
			a.trigger()
			c.awaitReply()
			a.wantHolding("a request was in flight")
			a.wantHoldSince(time.Now(), quiet1s-100*time.Millisecond, "quiet")
		})
	}
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		ns := newNamespace(t)
		a := ns.bootUntil("stage", "quiet", append(quiet1sFlags, "--max-silence=12"), helperCommand("probing", "127.0.0.1:0")...)
		c := a.dial("127.0.0.1")
		a.out.wait(t, "accepted")
		c.ask("hello")
		fmt.Fprintln(c, "slow")
		time.Sleep(100 * time.Millisecond) // the kernel delays an acknowledgment by up to 40 ms
		a.trigger()
		c.awaitReply()
		a.wantHoldSince(time.Now(), quiet1s-100*time.Millisecond, "quiet")
	})
}

// keepFastConn opens a connection with a few requests, and keeps the connection if every
// reply came at once. If a busy machine has delayed a reply, the server's kernel has
// acknowledged the request by itself, and the connection may prolong the hold; see
// docs/how-long.md.
func (a *app) keepFastConn() bool {
	a.t.Helper()
	c := a.dial("127.0.0.1")
	for range 4 {
		asked := time.Now()
		c.ask("hello")
		if time.Since(asked) > 20*time.Millisecond {
			c.Close()
			return false
		}
		time.Sleep(60 * time.Millisecond) // the client's kernel acknowledges after 40 ms without a further request
	}
	return true
}

// TestUntilListenerClosed: when the server has closed its listener, its port still
// counts, and requests in progress are not cut.
func TestUntilListenerClosed(t *testing.T) {
	t.Parallel()
	for user, stage := range users {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil(stage, "quiet", quiet1sFlags, helperCommand("app", "127.0.0.1:0")...)
			c := a.dial("127.0.0.1")
			c.ask("hello")
			start := a.trigger()
			a.awaitEvents()
			fmt.Fprintln(c, "slow")
			asked := time.Now()
			a.do("close")
			if _, err := ns.connect(a.addr("127.0.0.1")); err == nil {
				t.Error("the server still listens")
			}
			c.awaitReply()
			a.wantHolding("a request was in flight")
			a.wantHoldSince(start, asked.Sub(start)+4*time.Second-100*time.Millisecond, "quiet")
		})
	}
}

// TestUntilDownload: a reply that the client reads slowly is in flight while bytes are
// unsent. If the client reads nothing for --max-silence, the connection is given up.
func TestUntilDownload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reads      bool
		maxSilence string
	}{
		"taken slowly": {true, "--max-silence=8"},
		"not taken":    {false, "--max-silence=2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil("stage", "quiet", append(quiet1sFlags, c.maxSilence), helperCommand("web", "plain", "127.0.0.1:0")...)
			answer, err := (&http.Client{Transport: ns.transport()}).Get("http://" + a.addr("127.0.0.1") + "/large")
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			start := a.trigger()
			if !c.reads {
				a.wantHoldSince(start, 2*time.Second-500*time.Millisecond, "quiet")
				a.wantOpen(1)
				a.wantGivenUp(1, "2 s")
				return
			}
			time.Sleep(3 * quiet1s) // the client reads nothing for a while
			a.wantHolding("bytes were unsent")
			if n, err := io.Copy(io.Discard, answer.Body); n != largeBodyLen || err != nil {
				t.Errorf("the reply was cut after %d bytes: %v", n, err)
			}
			a.wantHolding("the reply had just ended")
			a.wantHoldSince(time.Now(), quiet1s-100*time.Millisecond, "quiet")
		})
	}
}

// TestUntilQueued: a client that waits in the accept queue prolongs the hold.
func TestUntilQueued(t *testing.T) {
	t.Parallel()
	for _, until := range []string{"settled", "quiet", "drained"} {
		t.Run(until, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil("stage:uid=65534", until, quiet1sFlags, helperCommand("one", "127.0.0.1:0")...)
			first, second := a.dial("127.0.0.1"), a.dial("127.0.0.1")
			fmt.Fprintln(first, "slow")
			a.trigger()
			first.awaitReply()
			first.Close()
			second.ask("hello")
			a.wantHolding("a client was in the accept queue")
			second.Close()
			a.wantHoldSince(time.Now(), quiet1s-200*time.Millisecond, until)
		})
	}
}

// TestUntilInherited: an inherited listener counts as the command's own.
func TestUntilInherited(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	l := ns.newListener()
	file := testutil.Must(l.(*net.TCPListener).File())
	b := newBox(t, "stage", nil, append(append([]string{"--until=quiet"}, append(quiet1sFlags, "--")...), helperCommand("inherited")...)...)
	b.cmd.ExtraFiles = []*os.File{file}
	a := &app{&serverBox{box: b}, ns}
	_, a.port, _ = net.SplitHostPort(l.Addr().String())
	ns.do(b.run)
	a.out.wait(t, "ready")
	file.Close()
	l.Close()
	a.trigger()
	repeatFor(2*quiet1s, 90*time.Millisecond, func() { a.shortConn("127.0.0.1") })
	a.wantHolding("a request had just ended")
	a.wantHoldSince(time.Now(), quiet1s-200*time.Millisecond, "quiet")
}
