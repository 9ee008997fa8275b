package truth

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Clients with 24 kept connections, in use until the server closes each, and some 150
// requests a second. Before each request the client looks whether the server has closed the
// connection. No request is retried.
const (
	keptConns    = 24
	keptGap      = 65 * ms // the average pause
	keptPatience = 6 * s   // for the server to close all connections after the signal
)

// keptThink returns how long the server works on the next request: mostly 20 ms, and 300 ms
// for one of eight.
func keptThink() time.Duration {
	if rand.IntN(8) == 0 {
		return 300 * ms
	}
	return 20 * ms
}

// keptPause returns the time from an answer to the next request on the connection.
func keptPause() time.Duration {
	return ms + time.Duration(rand.ExpFloat64()*float64(keptGap))
}

// keptExchange makes a request with a thinking time of the server, and reports whether the
// connection may be used again.
type keptExchange func(conn *conn, think time.Duration) (again bool, err error)

// keepUsing returns the script of a case whose clients begin a lead before TERM. A trial is
// right if no request fails beyond the race, and the server closes all connections.
func keepUsing(dial func(*client) *conn, exchange keptExchange, lead time.Duration) func(t *trial) {
	return func(t *trial) {
		c := t.client()
		t.keptClients(lead, func(int) { t.useKept(dial(c), exchange) })
	}
}

// keptClients plans the clients of all connections, and the verdict after them.
func (t *trial) keptClients(lead time.Duration, use func(i int)) {
	var users sync.WaitGroup
	users.Add(keptConns)
	for i := range keptConns {
		t.at(-lead+time.Duration(i)*10*ms, func() {
			defer users.Done()
			use(i)
		})
	}
	t.at(keptPatience, func() {
		users.Wait()
		t.judgeKept()
	})
}

// useKept uses a connection until the server closes it. The first request, which
// is slow on some servers, is not counted.
func (t *trial) useKept(conn *conn, exchange keptExchange) {
	if conn.err == nil {
		_, conn.err = exchange(conn, ms)
	}
	if conn.err != nil {
		t.check(conn.err)
		return
	}
	defer conn.Close()
	again := true
	for again && conn.staysOpen(keptPause()) {
		if time.Since(t.term) > keptPatience {
			return
		}
		var err error
		began := time.Now()
		conn.SetDeadline(began.Add(3 * s))
		again, err = exchange(conn, keptThink())
		t.noteKept(time.Since(began), err)
		again = again && err == nil
	}
	t.noteClosed()
}

// staysOpen waits, and returns false if the server closes the connection meanwhile.
func (c *conn) staysOpen(d time.Duration) bool {
	c.SetReadDeadline(time.Now().Add(d))
	_, err := c.in.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// postKept is an HTTP/1.1 request that clients do not retry.
func postKept(conn *conn, think time.Duration) (again bool, err error) {
	if _, err := fmt.Fprintf(conn, "POST /app?think=%dms HTTP/1.1\r\nHost: truth\r\nContent-Length: 1\r\n\r\nx", think.Milliseconds()); err != nil {
		return false, err
	}
	answer, err := http.ReadResponse(conn.in, nil)
	if err != nil {
		return false, err
	}
	return !answer.Close, (&site{}).finish(answer, nil)
}

// fastcgiKept is a request of FastCGI with FCGI_KEEP_CONN.
func (t *trial) fastcgiKept(conn *conn, think time.Duration) (again bool, err error) {
	if _, err := conn.Write(fcgiRequest(fcgiKeepConn, t.dir, fmt.Sprintf("think=%v", think))); err != nil {
		return false, err
	}
	return true, readFastCGI(conn.in)
}

// blpopKept is a command of Redis, waiting for an element of a list.
func blpopKept(conn *conn, think time.Duration) (again bool, err error) {
	if _, err := fmt.Fprintf(conn, "BLPOP none %v\r\n", think.Seconds()); err != nil {
		return false, err
	}
	return true, expectLine(conn, "*-1\r\n")
}

// getKept is a command of memcached, answered at once.
func getKept(conn *conn, _ time.Duration) (again bool, err error) {
	if _, err := io.WriteString(conn, "get none\r\n"); err != nil {
		return false, err
	}
	return true, expectLine(conn, "END\r\n")
}

// dialPostgres opens a session. See PostgreSQL's documentation, Frontend/Backend Protocol.
func (c *client) dialPostgres() *conn {
	conn := c.dial()
	if conn.err != nil {
		return conn
	}
	const version = 3 << 16
	text := binary.BigEndian.AppendUint32(nil, version)
	text = append(text, "user\x00postgres\x00database\x00postgres\x00\x00"...)
	_, conn.err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text)+4)), text...))
	if conn.err == nil {
		conn.err = readPostgres(conn.in)
	}
	return conn
}

// queryKept is a query of PostgreSQL.
func queryKept(conn *conn, think time.Duration) (again bool, err error) {
	query := fmt.Sprintf("SELECT pg_sleep(%v)\x00", think.Seconds())
	text := binary.BigEndian.AppendUint32([]byte("Q"), uint32(len(query)+4))
	if _, err := conn.Write(append(text, query...)); err != nil {
		return false, err
	}
	err = readPostgres(conn.in)
	return err == nil, err
}

// readPostgres reads messages until the server is ready for a query.
func readPostgres(in *bufio.Reader) error {
	for {
		var header [5]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return err
		}
		text := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(in, text); err != nil {
			return err
		}
		switch header[0] {
		case 'E':
			return fmt.Errorf("the answer is %q", text)
		case 'Z':
			return nil
		}
	}
}

func expectLine(conn *conn, want string) error {
	line, err := conn.in.ReadString('\n')
	if err == nil && line != want {
		err = fmt.Errorf("the answer is %q", line)
	}
	return err
}

// errSecondDial means that the client needs a second connection, since the server has
// closed the first or announced its end. The request was not lost.
var errSecondDial = errors.New("the first connection is closed")

// keepUsingH2 plans clients of HTTP/2 with four requests at a time on each connection.
// Requests above the last stream identifier of GOAWAY are not lost: a client may send these
// elsewhere (RFC 9113, section 6.8).
func keepUsingH2(t *trial) {
	var clients []func()
	for range keptConns / 4 {
		site := t.client().overOne(http2)
		connect := sync.OnceFunc(func() { t.check(site.do("GET", "/app", nil)) })
		clients = append(clients, slices.Repeat([]func(){func() {
			connect()
			t.useKeptH2(site)
		}}, 4)...)
	}
	t.keptClients(2*s, func(i int) { clients[i]() })
}

// overOne is like over, with at most one connection.
func (c *client) overOne(w wire) *site {
	p := c.over(w)
	p.http.Timeout = 3 * s
	transport := p.http.Transport.(*http.Transport)
	var once sync.Once
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		err = errSecondDial
		once.Do(func() { conn, err = dial(ctx, network, addr) })
		return conn, err
	}
	return p
}

// useKeptH2 sends requests until the connection is closed for new ones.
func (t *trial) useKeptH2(site *site) {
	var err error
	for err == nil && time.Since(t.term) < keptPatience {
		time.Sleep(keptPause())
		began := time.Now()
		err = site.do("POST", fmt.Sprintf("/app?think=%v", keptThink()), strings.NewReader("x"))
		if !errors.Is(err, errSecondDial) {
			t.noteKept(time.Since(began), err)
		}
	}
	if err != nil {
		t.noteClosed()
	}
}
