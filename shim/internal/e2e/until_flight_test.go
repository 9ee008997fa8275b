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

// Requests in flight are never cut, connections that merely look so do not hold
// for ever.

// TestUntilReceives: a server that never answers is waited for until --max-silence
// after what it received last, and no longer.
func TestUntilReceives(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	a := ns.bootUntil("stage", "quiet", append(quiet1sFlags, "--max-silence=3"), helperCommand("app", "127.0.0.1:0")...)
	c := a.dial("127.0.0.1")
	end := repeatEvery(50*time.Millisecond, func() { fmt.Fprintln(c, "-a.metric:1|c") })
	a.trigger()
	time.Sleep(2 * time.Second) // so long it is sent metrics
	end()
	a.wantHolding("it was being talked to")
	a.wantHoldSince(time.Now(), 2800*time.Millisecond, "quiet")
	a.wantReport("1 given up after 3 s of silence")
}

// TestUntilIdlePool: connections that are kept do not hold, though the client is so near
// that request, answer and acknowledgement fell into one jiffy; a slow request right
// behind a fast one does, also where the kernel acknowledges in another way.
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
			time.Sleep(1500 * time.Millisecond) // a probe
			a.wantHoldSince(a.trigger(), quiet1s-100*time.Millisecond, "quiet")
			a.wantReport("5 open at the end")
		})
		t.Run(server+", one waits", func(t *testing.T) {
			t.Parallel()
			a := pool(t)
			c := a.dial("127.0.0.1")
			c.ask("hello")
			fmt.Fprintln(c, "slow")
			time.Sleep(100 * time.Millisecond) // the kernel has acknowledged it
			a.trigger()
			if !c.in.Scan() {
				t.Errorf("the request was cut: %v", c.in.Err())
			}
			a.wantHolding("the answer had not come")
			a.wantHoldSince(time.Now(), quiet1s-100*time.Millisecond, "quiet")
		})
	}
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		ns := newNamespace(t)
		a := ns.bootUntil("stage", "quiet", append(quiet1sFlags, "--max-silence=12"), helperCommand("probing", "127.0.0.1:0")...)
		c := a.dial("127.0.0.1")
		time.Sleep(50 * time.Millisecond) // it has been accepted
		c.ask("hello")
		fmt.Fprintln(c, "slow")
		time.Sleep(100 * time.Millisecond)
		a.trigger()
		if !c.in.Scan() {
			t.Errorf("the request was cut: %v", c.in.Err())
		}
		a.wantHoldSince(time.Now(), quiet1s-100*time.Millisecond, "quiet")
	})
}

// keeps opens a connection with a few requests, and keeps the connection if every answer
// came at once. After an answer that a busy machine delayed, the server's kernel has
// acknowledged by itself, and the connection may hold; docs/limits.md says so.
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
		time.Sleep(60 * time.Millisecond) // after 40 the client's kernel acknowledges without a further request
	}
	return true
}

// TestUntilListenerClosed: the server closes its listener first, and still answers:
// the port stays one of ours.
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
				t.Error("it still listens")
			}
			if !c.in.Scan() {
				t.Errorf("the request was cut: %v", c.in.Err())
			}
			a.wantHolding("the answer had not come")
			a.wantHoldSince(start, asked.Sub(start)+4*time.Second-100*time.Millisecond, "quiet")
		})
	}
}

// TestUntilDownload: an answer that the client takes slowly is in flight while
// there is something to send, unless nobody takes it for too long.
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
				a.wantReport("1 open at the end, 0 in flight, 1 given up after 2 s of silence")
				return
			}
			time.Sleep(3 * quiet1s) // the client is slow
			a.wantHolding("there was more to send")
			if n, err := io.Copy(io.Discard, answer.Body); n != largeBodyLen || err != nil {
				t.Errorf("cut after %d bytes: %v", n, err)
			}
			a.wantHolding("the answer may not have been whole")
			a.wantHoldSince(time.Now(), quiet1s-100*time.Millisecond, "quiet")
		})
	}
}

// TestUntilQueued: who waits in the queue while another is served has not been
// served yet.
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
			if first.in.Scan(); first.Close() != nil {
				t.Errorf("the request was cut: %v", first.in.Err())
			}
			second.ask("hello")
			a.wantHolding("there was somebody in the queue")
			second.Close()
			a.wantHoldSince(time.Now(), quiet1s-200*time.Millisecond, until)
		})
	}
}

// TestUntilInherited: a listener that somebody else made and gave us counts.
func TestUntilInherited(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	var l net.Listener
	var err error
	if ns.do(func() { l, err = net.Listen("tcp", "127.0.0.1:0") }); err != nil {
		t.Fatal(err)
	}
	file := testutil.Must(l.(*net.TCPListener).File())
	b := newBox(t, "stage", nil, append(append([]string{"--until=quiet"}, append(quiet1sFlags, "--")...), helperCommand("inherited")...)...)
	b.cmd.ExtraFiles = []*os.File{file}
	a := &app{&serverBox{box: b}, ns}
	_, a.port, _ = net.SplitHostPort(l.Addr().String())
	ns.run(b)
	a.out.wait(t, "ready")
	file.Close()
	l.Close()
	a.trigger()
	end := repeatEvery(90*time.Millisecond, func() { a.shortConn("127.0.0.1") })
	time.Sleep(2 * quiet1s) // so long it is busy
	end()
	a.wantHolding("there had just been a request")
	a.wantHoldSince(time.Now(), quiet1s-200*time.Millisecond, "quiet")
}
