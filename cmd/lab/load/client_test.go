package load

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

const whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestKinds: each end of a request has a kind, and no request is sent twice.
func TestKinds(t *testing.T) {
	for want, answer := range map[Kind]string{
		Answered: whole,
		Status5:  "HTTP/1.1 503 No\r\n\r\nnot now",
		Other:    "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
		Cut:      whole[:len(whole)-1],
		Reset:    "",
		Timeout:  "",
	} {
		var requests atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			conn, _, _ := http.NewResponseController(w).Hijack()
			defer conn.Close()
			io.WriteString(conn, answer)
			switch want {
			case Reset:
				conn.(*net.TCPConn).SetLinger(0)
			case Timeout:
				time.Sleep(time.Second)
			}
		}))
		sent := int32(0)
		for _, body := range []string{"", "duck"} {
			for conns := range 2 {
				c := NewClient(conns, to(server.Listener.Addr().String()))
				sent++
				if got := c.HTTP("/", body, time.Now().Add(300*time.Millisecond)); got != want || requests.Load() != sent {
					t.Errorf("request %d of %d, of kind %q, want %q", sent, requests.Load(), got, want)
				}
				c.Close()
			}
		}
		server.Close()
	}
	for deadline, want := range map[time.Time]Kind{time.Unix(1, 0): Timeout, time.Now().Add(time.Minute): Refused} {
		if got := NewClient(0, to("127.0.0.1:1")).HTTP("/", "", deadline); got != want {
			t.Errorf("a connection is %q, want %q", got, want)
		}
	}
}

// to returns what connects to an address.
func to(addr string) Dial {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}

// TestPool: a pool opens a connection for each request until the pool is full, and then uses the
// connections in turn. Closed connections are replaced, and connections that are not kept are not
// used again.
func TestPool(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for size, want := range map[int][]int{0: {6, 12}, 3: {3, 6}} {
		var opened []net.Conn
		c := NewClient(size, func(ctx context.Context, network, _ string) (net.Conn, error) {
			conn, err := to(server.Listener.Addr().String())(ctx, network, "")
			opened = append(opened, conn)
			return conn, err
		})
		for _, want := range want {
			for range 6 {
				if got := c.HTTP("/", "duck", time.Now().Add(5*time.Second)); got != Answered {
					t.Fatal(got)
				}
			}
			if len(opened) != want {
				t.Errorf("%d connections, want %d", len(opened), want)
			}
			server.CloseClientConnections()
			for _, conn := range opened {
				if !must.Soon(5*time.Second, NewConn(conn).Ended) {
					t.Fatal("a closed connection looks open")
				}
			}
		}
		c.Close()
	}
}
