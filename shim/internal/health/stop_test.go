package health

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

// TestHead tests the answer to HEAD, which has no body.
func TestHead(t *testing.T) {
	l := serve(t, loopbackOnly())
	c := dial(t, l.addr())
	io.WriteString(c, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
	all, err := io.ReadAll(c)
	if text := string(all); err != nil || !strings.HasPrefix(text, healthy) || !strings.HasSuffix(text, "\r\n\r\n") {
		t.Errorf("HEAD received %q, %v; want a head alone", all, err)
	}
}

func loopbackOnly() check.Spec { return loopback(check.Spec{}.Target) }

// TestInProgress tests a request in progress at the stop: the app answers the request,
// in two pieces, and the next request on the connection is not relayed.
func TestInProgress(t *testing.T) {
	for _, mode := range []check.Mode{check.Fail, check.Close} {
		t.Run(mode.String(), func(t *testing.T) {
			l, client, server := relayed(t)
			transfer(t, client, server, "GET / HTTP/1.1\r\n\r\n")
			l.SetMode(mode)
			awaitMode(t, l, mode)
			transfer(t, server, client, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
			transfer(t, server, client, "fine")
			io.WriteString(client, "GET / HTTP/1.1\r\n\r\n")
			if mode == check.Fail {
				wantStatus(t, client, 503)
			} else {
				wantReset(t, client)
			}
			if n, err := server.Read(make([]byte, 1)); err == nil {
				t.Errorf("the app received %d bytes of the next request, want none", n)
			}
		})
	}
}

// awaitMode waits until checks show the mode.
func awaitMode(t *testing.T, l *listenerAt, mode check.Mode) {
	t.Helper()
	testutil.Eventually(t, "checks meet mode "+mode.String(), func() bool {
		status, _, err := askHealth(newClient(), l.url())
		return mode == check.Fail && status == 503 || mode == check.Close && errors.Is(err, syscall.ECONNREFUSED)
	})
}

// TestHalfClosedInProgress tests a half-close after the stop: not a new request.
func TestHalfClosedInProgress(t *testing.T) {
	l, client, server := relayed(t)
	transfer(t, client, server, "GET / HTTP/1.0\r\n\r\n")
	l.SetMode(check.Fail)
	awaitMode(t, l, check.Fail)
	transfer(t, server, client, "the first half, ")
	must(t, client.CloseWrite())
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("Read = %v, want EOF", err)
	}
	transfer(t, server, client, "and the second")
	server.Close()
	if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
		t.Errorf("after the answer: %q, %v; want EOF", rest, err)
	}
}

// TestSilentBeforeStop tests the first request on a connection older than the stop: a
// new request.
func TestSilentBeforeStop(t *testing.T) {
	l, client, server := relayed(t)
	l.SetMode(check.Fail)
	awaitMode(t, l, check.Fail)
	io.WriteString(client, "GET / HTTP/1.1\r\n\r\n")
	wantStatus(t, client, 503)
	if n, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the app received %d bytes of the request, %v; want EOF", n, err)
	}
}

// TestAnswerArrives tests clients that send more bytes than the listener reads, and read
// late: the answer arrives.
func TestAnswerArrives(t *testing.T) {
	l := serve(t, loopbackOnly())
	l.SetMode(check.Fail)
	for _, request := range []string{
		"POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200_000),
		"GET /" + strings.Repeat("x", 60_000), // longer than the buffer
		"\r\nGET / HTTP/1.1\n\n",
	} {
		c := dial(t, l.addr())
		if _, err := io.WriteString(c, request); err != nil {
			t.Error(err)
		}
		status, body := response(t, c, "GET")
		if status != 503 || body != "stopping\n" {
			t.Errorf("%.20q: %d %q; want 503", request, status, body)
		}
	}
}

// TestLongHead tests that the listener goes on reading when a request has filled its buffer.
func TestLongHead(t *testing.T) {
	l := open(t, loopbackOnly())
	c := dial(t, l.addr())
	io.WriteString(c, "GET /"+strings.Repeat("x", bufferLen-len("GET /")))
	pollUntil(t, l, "the request is answered", func() bool { return l.clients[0].answered })
	if !l.clients[0].up.canRead() {
		t.Error("the listener stopped reading")
	}
	wantStatus(t, c, 200)
}

// TestOdd tests clients that do not speak HTTP, or close early.
func TestOdd(t *testing.T) {
	l := serve(t, loopbackOnly())
	for request, want := range map[string]string{
		"":                   "", // connects only
		"\x16\x03\x01\x02":   "",
		"\x00\x00\x00\x04":   "",
		"\r\n\r\n\x00\r\nQU": "",
		"GET / HTTP/1.0\r\n": healthy + common + "ok\n", // half closed
	} {
		c := dial(t, l.addr())
		io.WriteString(c, request)
		c.CloseWrite()
		got, err := io.ReadAll(c)
		if string(got) != want || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: received %q, %v; want %q", request, got, err, want)
		}
	}
}

// TestTaken tests the errors of Open.
func TestTaken(t *testing.T) {
	_, at := app(t, "127.0.0.1:0")
	_, err := Open(check.Spec{Listen: at})
	want := "cannot listen on " + at.String() + ": address already in use"
	if err == nil || err.Error() != want {
		t.Errorf("Open = %v, want %q", err, want)
	}
	foreign, _ := check.Parse("127.0.0.1:9000=192.0.2.1:8080")
	want = "not an address of this container; give :8080"
	if _, err := Open(*foreign); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open = %v, want %q", err, want)
	}
}

// TestLimits tests how long clients may be silent before a stop.
func TestLimits(t *testing.T) {
	l, a := openWithApp(t)
	l.limits.greeting, l.limits.request = time.Millisecond, 50*time.Millisecond
	start(t, l)
	silent := dial(t, l.addr())
	wantResetAfterBytes(t, silent)
	wantResetAfterBytes(t, accept(t, a))

	l, a = openWithApp(t)
	begin := time.Now()
	talking, server := exchange(t, l, a)
	l.limits.kept = 100 * time.Millisecond
	start(t, l)
	wantResetAfterBytes(t, talking)
	wantResetAfterBytes(t, server)
	if took := time.Since(begin); took < l.limits.kept {
		t.Errorf("a kept connection lasted %v, want %v", took, l.limits.kept)
	}
}

// TestLimitsOfAnswers tests how long clients may be silent that get their answer here.
func TestLimitsOfAnswers(t *testing.T) {
	l := open(t, loopbackOnly())
	l.limits.request = 50 * time.Millisecond
	start(t, l)
	unfinished := dial(t, l.addr())
	io.WriteString(unfinished, "GET / HTT")
	wantResetAfterBytes(t, unfinished)

	l = open(t, loopbackOnly())
	l.limits.end = 50 * time.Millisecond
	start(t, l)
	answered := dial(t, l.addr())
	io.WriteString(answered, "GET / HTTP/1.1\r\n\r\n")
	wantStatus(t, answered, 200)
	testutil.Eventually(t, "the answered client is dropped", func() bool {
		_, err := answered.Write([]byte("x"))
		return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	})
}

// TestEndsIdle tests a relayed connection that the client keeps at a stop: it ends when it is
// idle.
func TestEndsIdle(t *testing.T) {
	for _, mode := range []check.Mode{check.Fail, check.Close} {
		l, a := openWithApp(t)
		client, server := exchange(t, l, a)
		l.limits.end, l.limits.request = 50*time.Millisecond, time.Hour
		start(t, l)
		transfer(t, server, client, "answer")
		l.SetMode(mode)
		for _, c := range []*net.TCPConn{client, server} {
			if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
				t.Errorf("%v: received %q, %v; want EOF", mode, rest, err)
			}
		}
	}
}

// TestEndsStuck tests relayed requests that last too long at a stop, whatever the client sends
// meanwhile.
func TestEndsStuck(t *testing.T) {
	l, a := openWithApp(t)
	silent, silentServer := exchange(t, l, a)
	hostile, hostileServer := exchange(t, l, a)
	l.limits.end, l.limits.request = time.Hour, 200*time.Millisecond
	start(t, l)
	trickle(hostile)
	go io.Copy(io.Discard, hostileServer)
	l.SetMode(check.Fail)
	wantResetAfterBytes(t, silent)
	wantResetAfterBytes(t, silentServer)
	if _, err := io.ReadAll(hostile); errors.Is(err, os.ErrDeadlineExceeded) { // its writer may have seen the reset
		t.Error("the hostile client is still connected")
	}
}

// exchange returns both ends of a relayed connection on which the client has sent a request. The
// listener does not serve by itself yet, so that its limits can be set afterwards.
func exchange(t *testing.T, l *listenerAt, a *net.TCPListener) (client, server *net.TCPConn) {
	t.Helper()
	n := l.count()
	client = dial(t, l.addr())
	io.WriteString(client, "GET")
	pollUntil(t, l, "the request is relayed", func() bool {
		return l.count() > n && l.clients[n].connected && l.clients[n].up.isEmpty()
	})
	server = accept(t, a)
	expect(t, server, "GET")
	return client, server
}

// TestPassDoesNotEnd tests that mode Pass ends no relayed connection at a stop.
func TestPassDoesNotEnd(t *testing.T) {
	l, a := openWithApp(t)
	l.limits.end = time.Millisecond
	client, server := exchange(t, l, a)
	start(t, l)
	transfer(t, server, client, "answer")
	l.SetMode(check.Pass)
	for range 10 {
		time.Sleep(2 * time.Millisecond) // longer than the limit
		transfer(t, client, server, "GET")
		transfer(t, server, client, "answer")
	}
}

// wantResetAfterBytes reads until the connection is reset.
func wantResetAfterBytes(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("ReadAll = %v, want a reset", err)
	}
}

// wantStatus reads a response to GET.
func wantStatus(t *testing.T, c net.Conn, want int) {
	t.Helper()
	if status, _ := response(t, c, "GET"); status != want {
		t.Errorf("status %d, want %d", status, want)
	}
}
