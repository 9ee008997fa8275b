package box

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/namespaces"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// Network is a network namespace with a loopback interface. lameduck observes its whole
// network namespace, so most tests of a hold have one of their own. A nil Network is the
// namespace of all tests of the package.
type Network struct {
	fd, parent int // the namespace, and the namespace of the test's other threads
}

// NewNetwork makes a network.
func NewNetwork(t *testing.T) *Network {
	t.Helper()
	netns.Need(t)
	runtime.LockOSThread() // stays locked after a failure: the thread then ends with the goroutine
	n := &Network{parent: openNetns()}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal("network namespace: ", err)
	}
	n.fd = openNetns()
	if err := namespaces.Up(); err != nil {
		t.Fatal("loopback: ", err)
	}
	if err := unix.Setns(n.parent, unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	runtime.UnlockOSThread()
	t.Cleanup(func() { unix.Close(n.fd); unix.Close(n.parent) })
	return n
}

func openNetns() int {
	return testutil.Must(unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0))
}

// Do calls what on a thread in the network. Sockets and processes stay in the network in
// which they were made.
func (n *Network) Do(what func()) {
	if n == nil {
		what()
		return
	}
	runtime.LockOSThread()
	if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
		panic(err)
	}
	defer func() {
		if unix.Setns(n.parent, unix.CLONE_NEWNET) == nil { // otherwise the thread stays locked, and ends with the goroutine
			runtime.UnlockOSThread()
		}
	}()
	what()
}

// Connect is net.Dial within the network, without keep-alive probes: where /proc/net is the source,
// any segment may be a request.
func (n *Network) Connect(address string) (conn net.Conn, err error) {
	d := net.Dialer{KeepAlive: -1}
	n.Do(func() { conn, err = d.Dial("tcp", address) })
	return conn, err
}

// Dial connects to a server in the network.
func (n *Network) Dial(t *testing.T, address string) *Client {
	t.Helper()
	conn, err := n.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &Client{conn, t, bufio.NewScanner(conn)}
}

// Listen returns a listener in the network, which accepts nothing.
func (n *Network) Listen(t *testing.T, address string) net.Listener {
	t.Helper()
	var l net.Listener
	n.Do(func() { l = testutil.Must(net.Listen("tcp", address)) })
	t.Cleanup(func() { l.Close() })
	return l
}

// Neighbor starts another container in the network, which serves.
func (n *Network) Neighbor(t *testing.T) *Box {
	t.Helper()
	b := Setup{Network: n}.Start(t, Helper("catch", "[::]:0")...)
	b.Ready()
	return b
}

// Client is a connection to a server that replies to lines.
type Client struct {
	net.Conn
	t  *testing.T
	in *bufio.Scanner
}

// Ask sends a line and waits for the reply.
func (c *Client) Ask(line string) {
	c.t.Helper()
	fmt.Fprintln(c, line)
	c.AwaitReply()
}

// TryAsk is Ask on a connection that the server may close, and reports whether a reply came.
func (c *Client) TryAsk(line string) bool {
	fmt.Fprintln(c, line)
	return c.in.Scan()
}

// AwaitReply waits for the reply to a line.
func (c *Client) AwaitReply() {
	c.t.Helper()
	if !c.in.Scan() {
		c.t.Errorf("the server closed the connection without a reply: %v", c.in.Err())
	}
}

// Talkers makes n clients send requests, each 400 ms after the reply to its latest, until they
// notice that the server has closed their connections. wait waits for the last. An answer takes
// longer than a tick of the kernel's clock, lest it be a tie; the idle time is much longer than
// the pauses of a busy machine, which connections must outlast to be closed.
func (b *Box) Talkers(n int) (wait func()) {
	var talking atomic.Int32
	for range n {
		talking.Add(1)
		c := b.Dial("127.0.0.1")
		go func() {
			for err := error(nil); err != io.EOF && c.TryAsk(Later); c.SetReadDeadline(time.Time{}) {
				c.SetReadDeadline(time.Now().Add(400 * time.Millisecond))
				_, err = c.Read(make([]byte, 1))
			}
			c.Close()
			talking.Add(-1)
		}()
	}
	return func() {
		testutil.Eventually(b.T, "all connections are closed", func() bool { return talking.Load() == 0 })
	}
}

// Repeat calls what at every interval until end is called. end waits for the last call.
func Repeat(every time.Duration, what func()) (end func()) {
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
