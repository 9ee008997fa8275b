package truth

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// client is a client with an address of its own.
type client struct {
	t    *trial
	p    *play
	addr net.IP

	// Of a pool: a connection, or what a library has with connections of its own.
	link   peers.Link
	single bool        // it is not replaced
	dialed atomic.Bool // clients of HTTP/2 dial in the background
	conn   atomic.Pointer[net.Conn]
}

// client returns the next client of a play.
func (t *trial) client(p *play) *client {
	n := t.clients.Add(1)
	addr := net.IPv4(10, 8, byte(n>>8), byte(n))
	if p.Peer != 0 {
		addr = net.IPv4(10, 8, 255, byte(p.Peer))
	}
	return &client{t: t, p: p, addr: addr}
}

// open opens a connection, and takes the first steps on it.
func (c *client) open() (peers.Link, error) {
	how := peers.Client{Protocol: c.p.Protocol, Server: c.server(), Dir: c.t.dir, Dial: c.dial,
		Renewed: c.p.Renewed, Ping: c.p.Ping, Limit: plays.Forever}
	if c.t.c.Lag > 0 && strings.HasPrefix(how.Protocol, "http") {
		how.Conns = c.p.Share // a pool of the library's
	}
	link, err := how.Open()
	if err == nil {
		err = c.take(link, c.p.First, request{})
	}
	return link, err
}

func (c *client) server() string {
	host := peers.ServerEnd.String()
	switch {
	case c.p.Front:
		return ingress
	case c.p.Pool && c.t.moved.Load():
		host = clientEnd
	}
	return fmt.Sprintf("%s:%d", host, c.p.Port)
}

// request has the words in which requests with the same steps differ.
type request struct {
	name  string
	think time.Duration // how long the server works on it
}

// take takes steps.
func (c *client) take(link peers.Link, steps []plays.Step, r request) (err error) {
	think := r.think.Seconds()
	words := strings.NewReplacer("THINK", fmt.Sprintf("%.4gms", think*1000), "SECONDS", fmt.Sprint(think),
		"NAME", r.name, "ADDRESS", c.addr.String())
	for _, step := range steps {
		step.Arg = words.Replace(step.Arg)
		if err = must.Try(func() { c.step(link, step) }); err != nil {
			return err
		}
		if !c.p.Aside && !c.p.Pool && !slices.Contains([]string{"wait", "until", "close"}, step.Verb) {
			c.t.mu.Lock()
			c.t.last = max(c.t.last, time.Since(c.t.term)) // a moment that the hold should wait for
			c.t.mu.Unlock()
		}
	}
	return nil
}

func (c *client) step(link peers.Link, step plays.Step) {
	t := c.t
	switch step.Verb {
	case "wait":
		t.sleep(plays.Duration(step.Arg))
	case "until":
		t.wait(plays.Duration(step.Arg))
	case "run":
		stage.Shell(step.Arg)
	case "ingress":
		t.ingress(step.Arg)
	case "signal":
		if !t.server.HasGone() {
			must.Do(t.server.Process.Signal(unix.SignalNum("SIG" + step.Arg)))
		}
	case "syn":
		c.syn()
	default:
		must.Do(link.Take(step))
	}
}

// dial connects from the client's address. The method suits http.Transport.
func (c *client) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: c.addr}, KeepAlive: -1, Timeout: 5 * s}
	if network == "udp" {
		d.LocalAddr = &net.UDPAddr{IP: c.addr}
	}
	d.SetMultipathTCP(c.p.Protocol == "mptcp")
	if c.single && c.dialed.Swap(true) {
		return nil, errClosed
	}
	conn, err := d.DialContext(ctx, network, c.server())
	if err == nil {
		c.conn.Store(&conn)
	}
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.t.held = append(c.t.held, conn) // the garbage collector would close it
	return conn, err
}

// syn sends a SYN from an address that no host has: the server's SYN-ACK gets no answer,
// and the kernel repeats it for about a minute. See ip(7), IP_TRANSPARENT.
func (c *client) syn() {
	fd := must.Get(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0))
	defer unix.Close(fd)
	must.Do(unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1))
	must.Do(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{10, 7, c.addr[14], c.addr[15]}}))
	sent := unix.Connect(fd, &unix.SockaddrInet4{Port: c.p.Port, Addr: [4]byte(peers.ServerEnd.To4())})
	must.Be(sent == unix.EINPROGRESS, "no SYN was sent: %v", sent)
	time.Sleep(100 * ms)
	_, err := unix.Getpeername(fd)
	must.Be(err != nil, "a SYN from nowhere was answered")
}
