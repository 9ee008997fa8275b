package e2e

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"golang.org/x/sys/unix"
)

// Lameduck observes its whole network namespace, so each of the following tests makes a
// namespace of its own. The test boots containers in the namespace, and the test's own
// clients connect from within.

// namespace is a network namespace with a loopback interface.
type namespace struct {
	t            *testing.T
	fd, parentFD int      // the namespace, and the namespace of the test's other threads
	other        net.Conn // see connectedToItself
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	netns.Need(t)
	runtime.LockOSThread() // stays locked after a failure: the thread then ends with the goroutine
	ns := &namespace{t: t, parentFD: openNetns(t)}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal("network namespace: ", err)
	}
	ns.fd = openNetns(t)
	if err := netns.Up(); err != nil {
		t.Fatal("loopback: ", err)
	}
	ns.other = connectedToItself()
	if err := unix.Setns(ns.parentFD, unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	runtime.UnlockOSThread()
	t.Cleanup(func() { unix.Close(ns.fd); unix.Close(ns.parentFD); ns.other.Close() })
	return ns
}

// connectedOnce is connectedToItself in the network namespace of all tests without another.
var connectedOnce = sync.OnceValue(connectedToItself)

// connectedToItself returns a connection in the network namespace of the thread, by which
// lameduck sees that the test's clients are another container.
func connectedToItself() net.Conn {
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	near := testutil.Must(net.Dial("tcp", l.Addr().String()))
	far := testutil.Must(l.Accept())
	go func() {
		io.Copy(io.Discard, far) // until the near end is closed
		far.Close()
	}()
	return near
}

func openNetns(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// do calls what on a thread in the namespace. Sockets and processes stay in the namespace
// in which they were made.
func (ns *namespace) do(what func()) {
	runtime.LockOSThread()
	if err := unix.Setns(ns.fd, unix.CLONE_NEWNET); err != nil {
		panic(err)
	}
	defer func() {
		if unix.Setns(ns.parentFD, unix.CLONE_NEWNET) == nil { // otherwise the thread stays locked, and ends with the goroutine
			runtime.UnlockOSThread()
		}
	}()
	what()
}

// connect is net.Dial within the namespace.
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

// listen starts a server within the namespace that replies to every line.
func (ns *namespace) listen() (address string) {
	ns.t.Helper()
	l := ns.newListener()
	ns.t.Cleanup(func() { l.Close() })
	go answer(l)
	return l.Addr().String()
}

func (ns *namespace) newListener() net.Listener {
	ns.t.Helper()
	var l net.Listener
	var err error
	ns.do(func() { l, err = net.Listen("tcp", "127.0.0.1:0") })
	if err != nil {
		ns.t.Fatal(err)
	}
	return l
}

// transport returns an HTTP transport whose connections start in the namespace.
func (ns *namespace) transport() *http.Transport {
	tr := &http.Transport{
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) { return ns.connect(address) },
	}
	ns.t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// oneRequestTransport returns a transport that opens a connection for every request.
func (ns *namespace) oneRequestTransport() *http.Transport {
	tr := ns.transport()
	tr.DisableKeepAlives = true
	return tr
}

// boot starts a container in the namespace, by way of the helper program stage, with new
// PID and mount namespaces.
func (ns *namespace) boot(stage string, words ...string) *app {
	ns.t.Helper()
	a := &app{&serverBox{box: newProgram(ns.t, nil, asPID1, helperCommand(stage, words...)...)}, ns}
	ns.do(a.run)
	a.out.wait(ns.t, "ready")
	if first := a.out.all()[0].text; strings.HasPrefix(first, "port ") {
		a.port = strings.TrimPrefix(first, "port ")
	}
	return a
}

// app is a container in a network namespace of its own or shared with neighbors.
type app struct {
	*serverBox
	ns *namespace
}

// quiet1sFlags shorten a hold: no floor, and a silence of quiet1s.
var quiet1sFlags = []string{"--delay=0", "--quiet-for=1", "--grace-period=30"}

const quiet1s = time.Second

// bootUntil boots lameduck with --until, --log-format=json and a command, by way of a stage.
func (ns *namespace) bootUntil(stage, until string, flags []string, words ...string) *app {
	ns.t.Helper()
	if strings.Contains(stage, "uid=") && !isRoot() {
		ns.t.Skip("only root can change its uid")
	}
	if _, err := os.Stat(binary); err != nil {
		ns.t.Fatalf("%v: make build first", err)
	}
	call := append([]string{binary, "--log-format=json", "--until=" + until}, append(flags, "--")...)
	return ns.boot(stage, append(call, words...)...)
}

// users are the stages for the users under which important tests run.
var users = map[string]string{"root": "stage", "nobody": "stage:uid=65534"}

// repeatFor calls what at every interval for the given time: traffic that goes on.
func repeatFor(d, every time.Duration, what func()) {
	end := repeatEvery(every, what)
	time.Sleep(d)
	end()
}

// repeatEvery calls what at every interval until end is called. end waits for the last
// call.
func repeatEvery(every time.Duration, what func()) (end func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				what()
			}
		}
	})
	return sync.OnceFunc(func() { close(stop); running.Wait() })
}
