package e2e

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"golang.org/x/sys/unix"
)

// What waits for traffic is told of all that goes on in its network namespace:
// these tests have one each, in which they start containers, and to which the
// clients in the test itself connect.

// place is a network namespace, with loopback.
type place struct {
	t      *testing.T
	fd, us int // it, and the one of the other tests
}

func newPlace(t *testing.T) *place {
	t.Helper()
	netns.Need(t)
	runtime.LockOSThread() // stays so if something fails: the thread ends with us
	p := &place{t: t, us: netnsOfThread(t)}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal("network namespace: ", err)
	}
	p.fd = netnsOfThread(t)
	if err := netns.Up(); err != nil {
		t.Fatal("loopback: ", err)
	}
	if err := unix.Setns(p.us, unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	runtime.UnlockOSThread()
	t.Cleanup(func() { unix.Close(p.fd); unix.Close(p.us) })
	return p
}

func netnsOfThread(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// do does something there: sockets and processes stay where they were made.
func (p *place) do(what func()) {
	runtime.LockOSThread()
	if err := unix.Setns(p.fd, unix.CLONE_NEWNET); err != nil {
		panic(err)
	}
	defer func() {
		if unix.Setns(p.us, unix.CLONE_NEWNET) == nil { // else the thread ends with us
			runtime.UnlockOSThread()
		}
	}()
	what()
}

func (p *place) run(b *box) { p.do(b.run) }

// connect is net.Dial from there.
func (p *place) connect(address string) (conn net.Conn, err error) {
	return p.connectFrom(nil, address)
}

func (p *place) connectFrom(from net.IP, address string) (conn net.Conn, err error) {
	var d net.Dialer
	if from != nil {
		d.LocalAddr = &net.TCPAddr{IP: from}
	}
	p.do(func() { conn, err = d.Dial("tcp", address) })
	return conn, err
}

func (p *place) dial(address string) *client {
	p.t.Helper()
	conn, err := p.connect(address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	return &client{conn, p.t, bufio.NewScanner(conn)}
}

// listen is net.Listen there; everything is read, each line is answered.
func (p *place) listen() (address string) {
	p.t.Helper()
	var l net.Listener
	var err error
	if p.do(func() { l, err = net.Listen("tcp", "127.0.0.1:0") }); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { l.Close() })
	go answer(l)
	return l.Addr().String()
}

// transport is one whose connections come from there.
func (p *place) transport() *http.Transport {
	tr := &http.Transport{
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) { return p.connect(address) },
	}
	p.t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// oneRequest is a transport that keeps no connection.
func (p *place) oneRequest() *http.Transport {
	tr := p.transport()
	tr.DisableKeepAlives = true
	return tr
}

// begin starts a container of the place, with its own processes and mounts.
func (p *place) begin(what string, words ...string) *app {
	p.t.Helper()
	a := &app{&serverBox{box: newProgram(p.t, nil, asPID1, helperCommand(what, words...)...)}, p}
	p.run(a.box)
	a.out.wait(p.t, "ready")
	if first := a.out.all()[0].text; strings.HasPrefix(first, "port ") {
		a.port = strings.TrimPrefix(first, "port ")
	}
	return a
}

// app is a server, or at least a program, in a place.
type app struct {
	*serverBox
	place *place
}

// brisk are flags that make all of it quicker still.
var brisk = []string{"--delay=0", "--quiet-for=1", "--grace-period=30"}

const instant = time.Second // the silence of brisk

// holding starts the program of words under lameduck, by way of a stage.
func (p *place) holding(stage, until string, flags []string, words ...string) *app {
	p.t.Helper()
	if strings.Contains(stage, "uid=") && !isRoot() {
		p.t.Skip("only root can become somebody else")
	}
	if _, err := os.Stat(binary); err != nil {
		p.t.Fatalf("%v: make build first", err)
	}
	call := append([]string{binary, "--until=" + until}, append(flags, "--")...)
	return p.begin(stage, append(call, words...)...)
}

// stages are who lameduck and its command may be, for the cases that matter most.
var stages = map[string]string{"root": "stage", "nobody": "stage:uid=65534"}

// steadily does something again and again, until told to end; that waits.
func steadily(every time.Duration, what func()) (end func()) {
	over := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				what()
			}
		}
	})
	return sync.OnceFunc(func() { close(over); done.Wait() })
}
