package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// haproxyConfig makes HAProxy answer every request itself, after the request's body.
const haproxyConfig = `
defaults
    mode http
    timeout client 10s
    timeout connect 1s
    timeout server 10s
    timeout http-request 10s
frontend web
    bind 127.0.0.1:%d
    http-request wait-for-body time 10s if METH_POST
    http-request return status 200 content-type text/plain string served
`

// TestHAProxy stops a real HAProxy under load, by either trigger. During the hold no request
// fails; then HAProxy gets USR1, its soft stop.
func TestHAProxy(t *testing.T) {
	needs(t, "haproxy")
	for i, trigger := range []sig.Signal{sig.TERM, sig.USR1} {
		t.Run(trigger.String(), func(t *testing.T) {
			t.Parallel()
			stopHAProxy(t, 8080+i, trigger)
		})
	}
}

func stopHAProxy(t *testing.T, port int, trigger sig.Signal) {
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(config, fmt.Appendf(nil, haproxyConfig, port), 0o644); err != nil {
		t.Fatal(err)
	}
	b := boot(t, nil, "--log-format=json", "--delay=2s", "--rewrite=TERM:USR1", "--", "haproxy", "-db", "-f", config)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	awaitPort(t, addr, true)
	slow := beginRequest(t, addr)

	load := startLoad(addr)
	load.await(t, 100)
	b.signal(trigger)
	hold := b.err.wait(t, "holding 2 s, then USR1")
	load.await(t, load.served.Load()+500)
	time.Sleep(time.Until(hold.at.Add(1500 * time.Millisecond))) // load for most of the hold
	load.end()
	if n := load.failed.Load(); n > 0 {
		t.Errorf("%d of %d requests failed: %v", n, n+load.served.Load(), load.failure.Load())
	}

	awaitPort(t, addr, false) // HAProxy closes its listener at USR1
	slow.finish(t)
	b.wantExit(0)
	r := parseReport(t, b.report())
	message := measured.ReplaceAllString(r.Message, "N s")
	wantMatch(t, message, fmt.Sprintf(`^%v: [1-9][0-9]* requests? in flight(, [1-9][0-9]* connections? (open|in use))?: held N s \(elapsed\), sent USR1( at \+N s)?, exited 0 at \+N s of 10 s \(assumed\); [0-9]+ new connections [▁-█]+, the last at \+N s(; [^;]*)*$`, trigger))
	if *r.Open == 0 || *r.InFlight == 0 || r.LastByteMS == nil || r.Observer == nil || r.Scope == nil || len(r.Sent) != 1 || !r.GraceAssumed {
		t.Errorf("report %s, want open connections, requests in flight, the last byte, a source, one signal and an assumed grace period", b.report())
	}
}

// awaitPort waits until connections to addr succeed (open), or fail.
func awaitPort(t *testing.T, addr string, open bool) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("%s accepts connections: %v", addr, open), func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return (err == nil) == open
	})
}

// slowRequest is a request whose body is not complete. A hard stop would cut the request.
type slowRequest struct{ conn net.Conn }

func beginRequest(t *testing.T, addr string) slowRequest {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nha")
	return slowRequest{conn}
}

func (r slowRequest) finish(t *testing.T) {
	t.Helper()
	defer r.conn.Close()
	fmt.Fprint(r.conn, "lf")
	answer, err := http.ReadResponse(bufio.NewReader(r.conn), nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("the request in flight at the stop signal: %v, %v; want status 200", answer, err)
	}
}

// clients is the number of clients of a load.
const clients = 4

// load is a steady stream of requests: half of the clients keep their connections, half
// open a new connection for each request. No request is retried.
type load struct {
	served, failed atomic.Int64
	failure        atomic.Value
	stop           chan struct{}
	done           chan struct{}
}

func startLoad(addr string) *load {
	l := &load{stop: make(chan struct{}), done: make(chan struct{})}
	for i := range clients {
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
		go func() {
			defer func() { l.done <- struct{}{} }()
			for {
				select {
				case <-l.stop:
					client.CloseIdleConnections()
					return
				default:
					l.request(client, "http://"+addr+"/")
				}
			}
		}()
	}
	return l
}

func (l *load) request(client *http.Client, url string) {
	// net/http retries no request with a body of unknown length.
	answer, err := client.Post(url, "text/plain", io.MultiReader(strings.NewReader("x")))
	if err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %s", answer.Status)
		}
	}
	if err != nil {
		l.failed.Add(1)
		l.failure.Store(err.Error())
		return
	}
	l.served.Add(1)
}

// await waits until the number of served requests, from the start, is at least served.
func (l *load) await(t *testing.T, served int64) {
	t.Helper()
	for end := time.Now().Add(testutil.Patience); l.served.Load() < served; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d requests served, %d failed (%v)", l.served.Load(), l.failed.Load(), l.failure.Load())
		}
	}
}

// end stops all clients, after their current requests.
func (l *load) end() {
	close(l.stop)
	for range clients {
		<-l.done
	}
}
