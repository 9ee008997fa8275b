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
type namespace struct {
	t            *testing.T
	fd, parentFD int // it, and the one of the other tests
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	netns.Need(t)
	runtime.LockOSThread() // stays so if something fails: the thread ends with us
	ns := &namespace{t: t, parentFD: openNetns(t)}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal("network namespace: ", err)
	}
	ns.fd = openNetns(t)
	if err := netns.Up(); err != nil {
		t.Fatal("loopback: ", err)
	}
	if err := unix.Setns(ns.parentFD, unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	runtime.UnlockOSThread()
	t.Cleanup(func() { unix.Close(ns.fd); unix.Close(ns.parentFD) })
	return ns
}

func openNetns(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// do does something there: sockets and processes stay where they were made.
func (ns *namespace) do(what func()) {
	runtime.LockOSThread()
	if err := unix.Setns(ns.fd, unix.CLONE_NEWNET); err != nil {
		panic(err)
	}
	defer func() {
		if unix.Setns(ns.parentFD, unix.CLONE_NEWNET) == nil { // else the thread ends with us
			runtime.UnlockOSThread()
		}
	}()
	what()
}

func (ns *namespace) run(b *box) { ns.do(b.run) }

// connect is net.Dial from there.
func (ns *namespace) connect(address string) (conn net.Conn, err error) {
	return ns.connectFrom(nil, address)
}

func (ns *namespace) connectFrom(from net.IP, address string) (conn net.Conn, err error) {
	var d net.Dialer
	if from != nil {
		d.LocalAddr = &net.TCPAddr{IP: from}
	}
	ns.do(func() { conn, err = d.Dial("tcp", address) })
	return conn, err
}

func (ns *namespace) dial(address string) *client {
	ns.t.Helper()
	conn, err := ns.connect(address)
	if err != nil {
		ns.t.Fatal(err)
	}
	ns.t.Cleanup(func() { conn.Close() })
	return &client{conn, ns.t, bufio.NewScanner(conn)}
}

// listen is net.Listen there; everything is read, each line is answered.
func (ns *namespace) listen() (address string) {
	ns.t.Helper()
	var l net.Listener
	var err error
	if ns.do(func() { l, err = net.Listen("tcp", "127.0.0.1:0") }); err != nil {
		ns.t.Fatal(err)
	}
	ns.t.Cleanup(func() { l.Close() })
	go answer(l)
	return l.Addr().String()
}

// transport is one whose connections come from there.
func (ns *namespace) transport() *http.Transport {
	tr := &http.Transport{
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) { return ns.connect(address) },
	}
	ns.t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// oneRequest is a transport that keeps no connection.
func (ns *namespace) oneRequestTransport() *http.Transport {
	tr := ns.transport()
	tr.DisableKeepAlives = true
	return tr
}

// begin starts a container of the place, with its own processes and mounts.
func (ns *namespace) boot(what string, words ...string) *app {
	ns.t.Helper()
	a := &app{&serverBox{box: newProgram(ns.t, nil, asPID1, helperCommand(what, words...)...)}, ns}
	ns.run(a.box)
	a.out.wait(ns.t, "ready")
	if first := a.out.all()[0].text; strings.HasPrefix(first, "port ") {
		a.port = strings.TrimPrefix(first, "port ")
	}
	return a
}

// app is a server, or at least a program, in a place.
type app struct {
	*serverBox
	ns *namespace
}

// brisk are flags that make all of it quicker still.
var quiet1sFlags = []string{"--delay=0", "--quiet-for=1", "--grace-period=30"}

const quiet1s = time.Second // the silence of brisk

// holding starts the program of words under lameduck, by way of a stage.
func (ns *namespace) bootUntil(stage, until string, flags []string, words ...string) *app {
	ns.t.Helper()
	if strings.Contains(stage, "uid=") && !isRoot() {
		ns.t.Skip("only root can change its uid")
	}
	if _, err := os.Stat(binary); err != nil {
		ns.t.Fatalf("%v: make build first", err)
	}
	call := append([]string{binary, "--until=" + until}, append(flags, "--")...)
	return ns.boot(stage, append(call, words...)...)
}

// stages are who lameduck and its command may be, for the cases that matter most.
var users = map[string]string{"root": "stage", "nobody": "stage:uid=65534"}

// steadily does something again and again, until told to end; that waits.
func repeatEvery(every time.Duration, what func()) (end func()) {
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
