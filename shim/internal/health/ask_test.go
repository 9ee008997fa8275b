package health

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// serveOnce reads a request, and sends pieces of an answer; "wait" keeps the connection open, and "end" says
// how the client ends it. It returns the method, the path and the host.
func serveOnce(l net.Listener, pieces []string) chan string {
	head := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		r := testutil.Must(http.ReadRequest(bufio.NewReader(conn)))
		head <- fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Host)
		for _, piece := range pieces {
			switch piece {
			case "wait":
				io.Copy(io.Discard, conn)
				return
			case "end":
				conn.(*net.TCPConn).CloseWrite()
				_, err := conn.Read(make([]byte, 1))
				head <- fmt.Sprint(err)
				return
			case "endless": // interim answers
				for err := error(nil); err == nil; {
					_, err = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n\r\n")
				}
				return
			}
			io.WriteString(conn, piece)
		}
	}()
	return head
}

// TestAsk: the status of the answer, or why there is none, over TCP and a Unix socket. A server may
// keep the connection open. The connections over TCP are listed.
func TestAsk(t *testing.T) {
	for _, cells := range tables.Rows(`
		# what the server sends | the outcome
		HTTP/1.1 200 OK\r\n\r\n             | 200 <nil>
		HTTP/1.0 503 Unavailable\r\n\r\nbody | 503 <nil>
		HTTP/1.1 2,04 No,\r\n               | 204 <nil>
		HTTP/1.1 200 OK\r\n,wait            | 200 <nil>
		HTTP/1.1 200 OK                     | 0 no answer in HTTP/1
		HTTP/2 200\r\n                      | 0 no answer in HTTP/1
		SSH-2.0-OpenSSH\r\n,wait            | 0 no answer in HTTP/1
		                                    | 0 no answer in HTTP/1
		wait                                | 0 no answer
		HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n,HTTP/1.1 200 OK\r\n,wait | 200 <nil>
		HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 5,03 U\r\n | 503 <nil>
		HTTP/1.1 101 Switching Protocols\r\n,wait | 101 <nil>
		HTTP/1.1 103 Early Hints\r\n\r\n,wait | 0 no answer
		HTTP/1.1 103 Early Hints\r\n\r\nSSH-2.0-OpenSSH\r\n | 0 no answer in HTTP/1
		endless                             | 0 no answer in HTTP/1
	`) {
		for _, network := range []string{"tcp", "unix"} {
			pieces := strings.Split(strings.ReplaceAll(cells[0], `\r\n`, "\r\n"), ",")
			path := t.TempDir() + "/s"
			l := testutil.Must(net.Listen(network, map[string]string{"tcp": "127.0.0.1:0", "unix": path}[network]))
			host, url := l.Addr().String(), "http://"+l.Addr().String()
			if network == "unix" {
				host, url = "localhost", "unix:"+path
			}
			head := serveOnce(l, pieces)
			limit := testutil.Patience
			if cells[1] == "0 no answer" {
				limit = 100 * time.Millisecond
			}
			conns := NewConns()
			status, err := conns.Ask(testutil.Must(check.ParseRequest("GET "+url+"/a/b?c")), limit)
			if got := fmt.Sprint(status, " ", err); got != cells[1] {
				t.Errorf("%s, %q: %s, want %s", network, pieces, got, cells[1])
			}
			if got := <-head; got != "GET /a/b?c "+host {
				t.Errorf("%s: sent %q", network, got)
			}
			isListed := conns.Opens() == 1 && len(conns.Since(nil, time.Now().Add(-time.Minute))) == 1
			if isListed != (network == "tcp") {
				t.Errorf("%s: %d opened, %v", network, conns.Opens(), conns.Since(nil, time.Time{}))
			}
			l.Close()
		}
	}
}

// TestAskLong: all of a long answer is read, and the connection is not reset.
func TestAskLong(t *testing.T) {
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	head := serveOnce(l, []string{"HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 1<<16), "end"})
	status, err := NewConns().Ask(testutil.Must(check.ParseRequest("GET http://"+l.Addr().String()+"/")), testutil.Patience)
	if <-head; status != 200 || err != nil {
		t.Errorf("%d %v", status, err)
	}
	if got := <-head; got != io.EOF.Error() {
		t.Error(got)
	}
}

// TestAskNobody: a connection that is refused, and one that is not accepted. On localhost the second
// address is tried.
func TestAskNobody(t *testing.T) {
	l, at := listenAt(t, "[::1]:0")
	head := serveOnce(l, []string{"HTTP/1.1 200 OK\r\n\r\n"})
	ask := func(url string, limit time.Duration) string {
		status, err := NewConns().Ask(testutil.Must(check.ParseRequest(url)), limit)
		return fmt.Sprint(status, " ", err)
	}
	localhost := fmt.Sprintf("http://localhost:%d/", at.Port())
	if got := ask(localhost, testutil.Patience); got != "200 <nil>" || !strings.HasPrefix(<-head, "POST / ") {
		t.Errorf("the second address: %s", got)
	}
	l.Close()
	for _, url := range []string{localhost, "unix:" + t.TempDir() + "/none/x"} {
		if got := ask(url, testutil.Patience); got != "0 connection refused" {
			t.Errorf("%s: %s, want a refusal", url, got)
		}
	}
	if got := ask("http://"+testutil.FullListener(t)+"/", 100*time.Millisecond); got != "0 no connection" {
		t.Errorf("not accepted: %s", got)
	}
}

// TestAskWithoutIPv6: nobody listens on localhost, which has one address.
func TestAskWithoutIPv6(t *testing.T) {
	netns.Need(t)
	const off = "/proc/sys/net/ipv6/conf/all/disable_ipv6"
	if err := os.WriteFile(off, []byte("1"), 0); err != nil {
		t.Skip("may not turn IPv6 off: ", err)
	}
	defer os.WriteFile(off, []byte("0"), 0)
	_, err := NewConns().Ask(testutil.Must(check.ParseRequest("http://localhost:9/")), testutil.Patience)
	if err != unix.ECONNREFUSED {
		t.Errorf("%v, want a refusal", err)
	}
}
