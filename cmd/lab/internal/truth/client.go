package truth

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
)

// client is a client with an address of its own.
type client struct {
	t    *trial
	ip   net.IP
	once *sync.Once // shared by the clients at the address
	only *onlyConn  // nil: any number of connections
}

// client returns the next client. The first use adds the address to lo.
func (t *trial) client() *client {
	t.clients++
	return &client{t: t, ip: net.IPv4(10, 8, byte(t.clients>>8), byte(t.clients)), once: new(sync.Once)}
}

// crowd returns n clients.
func (t *trial) crowd(n int) []*client {
	var all []*client
	for range n {
		all = append(all, t.client())
	}
	return all
}

func (c *client) address() *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: c.ip, Mask: net.CIDRMask(32, 32)}}
}

func (c *client) open() (err error) {
	c.once.Do(func() {
		lo, e := netlink.LinkByName("lo")
		if e == nil {
			e = netlink.AddrAdd(lo, c.address())
		}
		if e != nil {
			err = fmt.Errorf("cannot add the address of a client: %w", e)
		}
	})
	return err
}

// vanish takes the client's address away: a segment of the server gets no
// answer, neither an acknowledgement nor a RST nor an ICMP message.
func (c *client) vanish() {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.AddrDel(lo, c.address())
	}
	c.t.check(err)
}

// comeBack gives back the address of a client that vanished.
func (c *client) comeBack() {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.AddrAdd(lo, c.address())
	}
	c.t.check(err)
}

// dialContext connects from the client's address. The method suits http.Transport.
func (c *client) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if c.only != nil {
		return c.only.dial(func() (net.Conn, error) { return c.connect(ctx, network, addr) })
	}
	return c.connect(ctx, network, addr)
}

func (c *client) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: c.ip}, KeepAlive: -1, Timeout: 5 * s}
	conn, err := d.DialContext(ctx, network, addr)
	c.t.hold(conn)
	return conn, err
}

// hold keeps a connection from the garbage collector, which would close it.
func (t *trial) hold(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = append(t.held, conn)
}

// conn is a connection to the raw server, or the error of the connect.
type conn struct {
	net.Conn
	t   *trial
	in  *bufio.Reader
	err error
}

// dial connects. An error shows at the first request.
func (c *client) dial() *conn { return c.dialPort(port) }

func (c *client) dialPort(port int) *conn {
	nc, err := c.dialContext(context.Background(), "tcp", net.JoinHostPort(serverEnd.String(), fmt.Sprint(port)))
	return newConn(c.t, nc, err)
}

func newConn(t *trial, nc net.Conn, err error) *conn {
	if err != nil {
		return &conn{t: t, err: err}
	}
	return &conn{Conn: nc, t: t, in: bufio.NewReader(nc)}
}

// send writes a line without waiting for an answer.
func (c *conn) send(line string) error {
	if c.err != nil {
		return c.err
	}
	_, err := fmt.Fprintln(c, line)
	return err
}

// receive reads an answer to the newline.
func (c *conn) receive() error {
	if c.err != nil {
		return c.err
	}
	_, err := c.in.ReadSlice('\n')
	for err == bufio.ErrBufferFull {
		_, err = c.in.ReadSlice('\n')
	}
	return err
}

// exchange sends a line and reads the answer.
func (c *conn) exchange(line string) error {
	if err := c.send(line); err != nil {
		return err
	}
	return c.receive()
}

// ask makes a request that counts.
func (c *conn) ask(line string) {
	c.t.real(func() error { return c.exchange(line) })
}

// askClosing makes a request that counts and closes the client's half of the connection.
func (c *conn) askClosing(line string) {
	c.t.real(func() error {
		if err := c.send(line); err != nil {
			return err
		}
		c.halfClose()
		return c.receive()
	})
}

// ping makes a request that does not count.
func (c *conn) ping(line string) { c.t.spare(c.exchange(line)) }

// stop closes the connection.
func (c *conn) stop() {
	if c.err == nil {
		c.Close()
	}
}

// reset closes the connection with a RST.
func (c *conn) reset() {
	if tc, ok := c.Conn.(*net.TCPConn); ok {
		tc.SetLinger(0)
		tc.Close()
	}
}

// halfClose sends a FIN: the client writes no more, and reads on.
func (c *conn) halfClose() {
	if tc, ok := c.Conn.(*net.TCPConn); ok {
		tc.CloseWrite()
	}
}

// short makes a request that counts on a connection of its own.
func (c *client) short(line string) {
	conn := c.dial()
	conn.ask(line)
	conn.stop()
}

// probe makes a request that does not count on a connection of its own.
func (c *client) probe(line string) {
	conn := c.dial()
	conn.ping(line)
	conn.stop()
}

// handshake opens a TLS 1.3 connection and sends no request.
func (c *client) handshake() {
	nc, err := c.dialContext(context.Background(), "tcp", serverAddr())
	if err == nil {
		err = tls.Client(nc, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}).Handshake()
	}
	c.t.check(err)
}

// check connects and closes at once, as a TCP health check.
func (c *client) check() { c.dial().stop() }

// steady plans f from from to to, at a rate a second, each in a goroutine of its own.
func (t *trial) steady(from, to time.Duration, rate float64, f func()) {
	period := time.Duration(float64(time.Second) / rate)
	for moment := from; moment < to; moment += period {
		t.at(moment, f)
	}
}

// poisson plans f at random moments from from to to, at a rate a second, each in a
// goroutine of its own. The seed alone decides the moments.
func (t *trial) poisson(from, to time.Duration, rate float64, seed uint64, f func()) {
	r := newRandom(seed)
	for moment := from; ; {
		moment += time.Duration(r.ExpFloat64() / rate * float64(time.Second))
		if moment >= to {
			return
		}
		t.at(moment, f)
	}
}
