package health

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOwn: without a target it says 200 itself, and 503 under Fail.
func TestOwn(t *testing.T) {
	l := serve(t, Spec{})
	wantCheck(t, fresh(), l.url(), 200, "ok\n")
	l.SetMode(Pass)
	wantCheck(t, fresh(), l.url(), 200, "ok\n")
	l.SetMode(Fail)
	wantCheck(t, fresh(), l.url(), 503, "stopping\n")
}

// TestHead: an answer to HEAD has no body.
func TestHead(t *testing.T) {
	l := serve(t, loopbackOnly())
	r, err := fresh().Head(l.url())
	must(t, err)
	if body, err := io.ReadAll(r.Body); r.StatusCode != http.StatusOK || r.ContentLength != 3 || len(body) > 0 || err != nil {
		t.Errorf("%v, %q, %v", r, body, err)
	}
	c := dial(t, l.addr())
	io.WriteString(c, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
	if all, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(all), "\r\n\r\n") {
		t.Errorf("%q, %v", all, err)
	}
}

func loopbackOnly() Spec { return loopback(Spec{}.Target) }

// TestFail: checks get 503, while a direct request to the app still succeeds.
func TestFail(t *testing.T) {
	at := web(t, "127.0.0.1:0")
	l := serve(t, loopback(at))
	wantCheck(t, fresh(), l.url(), 200, "fine /health")
	l.SetMode(Fail)
	wantCheck(t, fresh(), l.url(), 503, "stopping\n")
	wantCheck(t, fresh(), "http://"+at.String()+"/direct", 200, "fine /direct")
}

// TestPass: a stop changes nothing.
func TestPass(t *testing.T) {
	l := serve(t, loopback(web(t, "127.0.0.1:0")))
	l.SetMode(Pass)
	wantCheck(t, fresh(), l.url(), 200, "fine /health")
}

// TestClose: connections are refused, by and by.
func TestClose(t *testing.T) {
	l := serve(t, loopback(web(t, "127.0.0.1:0")))
	wantCheck(t, fresh(), l.url(), 200, "fine /health")
	l.SetMode(Close)
	wait(t, "connections to be refused", func() bool {
		c, err := net.Dial("tcp", l.addr())
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
}

// TestInProgress: a request that the app works on when the stop comes is answered by
// it, though in two pieces; the next one on that connection is not passed on.
func TestInProgress(t *testing.T) {
	for _, mode := range []Mode{Fail, Close} {
		t.Run(mode.String(), func(t *testing.T) {
			l, client, server := through(t)
			say(t, client, server, "GET / HTTP/1.1\r\n\r\n")
			l.SetMode(mode)
			heeded(t, l, mode)
			say(t, server, client, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
			say(t, server, client, "fine")
			io.WriteString(client, "GET / HTTP/1.1\r\n\r\n")
			if mode == Fail {
				if status, _ := response(t, client, "GET"); status != 503 {
					t.Errorf("the next request: %d", status)
				}
			} else if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the next request: %v", err)
			}
			if n, err := server.Read(make([]byte, 1)); err == nil {
				t.Errorf("the app got %d bytes of it", n)
			}
		})
	}
}

// heeded waits until the mode is what checks meet.
func heeded(t *testing.T, l *Listener, mode Mode) {
	t.Helper()
	wait(t, mode.String(), func() bool {
		status, _, err := check(fresh(), l.url())
		return mode == Fail && status == 503 || mode == Close && errors.Is(err, syscall.ECONNREFUSED)
	})
}

// TestHalfClosedInProgress: that a client will say no more is no new request.
func TestHalfClosedInProgress(t *testing.T) {
	l, client, server := through(t)
	say(t, client, server, "GET / HTTP/1.0\r\n\r\n")
	l.SetMode(Fail)
	heeded(t, l, Fail)
	say(t, server, client, "the first half, ")
	must(t, client.CloseWrite())
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Error(err)
	}
	say(t, server, client, "and the second")
	server.Close()
	if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestSilentBeforeStop: a request is a new one though its connection is older than
// the stop.
func TestSilentBeforeStop(t *testing.T) {
	l, client, server := through(t)
	l.SetMode(Fail)
	heeded(t, l, Fail)
	io.WriteString(client, "GET / HTTP/1.1\r\n\r\n")
	if status, _ := response(t, client, "GET"); status != 503 {
		t.Error(status)
	}
	if n, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the app got %d bytes of it, %v", n, err)
	}
}

// TestKeptAlive: a pool's idle connection gets 503 too, and the app never hears of it.
func TestKeptAlive(t *testing.T) {
	l := serve(t, loopback(web(t, "127.0.0.1:0")))
	kept := &http.Client{Timeout: timeout, Transport: &http.Transport{}}
	defer kept.CloseIdleConnections()
	wantCheck(t, kept, l.url(), 200, "fine /health")
	l.SetMode(Fail)
	wantCheck(t, kept, l.url(), 503, "stopping\n")
}

// TestAnswerArrives: though the client said more than is read, and long before it
// listens.
func TestAnswerArrives(t *testing.T) {
	l := serve(t, loopbackOnly())
	l.SetMode(Fail)
	for _, request := range []string{
		"POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200_000),
		"GET /" + strings.Repeat("x", 60_000), // no head is that long
		"\r\nGET / HTTP/1.1\n\n",
	} {
		c := dial(t, l.addr())
		if _, err := io.WriteString(c, request); err != nil {
			t.Error(err)
		}
		if status, body := response(t, c, "GET"); status != 503 || body != "stopping\n" {
			t.Errorf("%.20q: %d %q", request, status, body)
		}
	}
}

// TestOdd: clients that are no HTTP clients, or go too soon.
func TestOdd(t *testing.T) {
	l := serve(t, loopbackOnly())
	for request, want := range map[string]string{
		"":                   "", // a check of TCP alone
		"\x16\x03\x01\x02":   "",
		"\x00\x00\x00\x04":   "",
		"\r\n\r\n\x00\r\nQU": "",
		"GET / HTTP/1.0\r\n": healthy, // half closed
	} {
		c := dial(t, l.addr())
		io.WriteString(c, request)
		c.CloseWrite()
		got, err := io.ReadAll(c)
		if string(got) != want || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: %q, %v", request, got, err)
		}
	}
}

// TestByteByByte: a head may come in pieces.
func TestByteByByte(t *testing.T) {
	l := serve(t, loopbackOnly())
	c := dial(t, l.addr())
	for _, b := range []byte("GET / HTTP/1.1\r\n\r\n") {
		c.Write([]byte{b})
	}
	if status, _ := response(t, c, "GET"); status != 200 {
		t.Error(status)
	}
}

// TestStopAmidBytes: what streams when the stop comes is not cut.
func TestStopAmidBytes(t *testing.T) {
	const size = 4 << 20
	l := serve(t, loopback(webOf(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, size))
	})))
	r, err := fresh().Get(l.url())
	must(t, err)
	defer r.Body.Close()
	l.SetMode(Fail)
	heeded(t, l, Fail)
	if n, err := io.Copy(io.Discard, r.Body); n != size || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestEnds: Close leaves nothing, whatever came before it, and may come twice.
func TestEnds(t *testing.T) {
	noLeak(t, func(t *testing.T) {
		at := web(t, "127.0.0.1:0")
		for _, mode := range []Mode{Pass, Fail, Close} {
			l := serve(t, loopback(at))
			wantCheck(t, fresh(), l.url(), 200, "fine /health")
			c := dial(t, l.addr())
			l.SetMode(mode)
			l.Close()
			if _, err := io.ReadAll(c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Error(err)
			}
			l.Close()
			l.SetMode(Fail)
			c.Close()
		}
		never := open(t, loopback(at))
		never.Close()
		never.Serve()
	})
}

// TestTaken: the error is fit for people.
func TestTaken(t *testing.T) {
	_, at := app(t, "127.0.0.1:0")
	_, err := Open(Spec{Listen: at})
	if want := "cannot listen on " + at.String() + ": address already in use"; err == nil || err.Error() != want {
		t.Errorf("%v; want %q", err, want)
	}
	foreign, _ := Parse("127.0.0.1:9000=192.0.2.1:8080")
	if _, err := Open(foreign); err == nil || !strings.Contains(err.Error(), "not an address of this container; give :8080") {
		t.Errorf("%v", err)
	}
}

// TestTimes: nobody stays for ever.
func TestTimes(t *testing.T) {
	a, at := app(t, "127.0.0.1:0")
	l := open(t, loopback(at))
	l.timeouts = timeouts{setup: 50 * time.Millisecond, idle: 50 * time.Millisecond, closing: 50 * time.Millisecond, acceptRetry: time.Second}
	go l.Serve()
	silent, talking := dial(t, l.addr()), dial(t, l.addr())
	io.WriteString(talking, "hello")
	for _, c := range []*net.TCPConn{silent, talking, accept(t, a), accept(t, a)} {
		if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v", err)
		}
	}
	l.SetMode(Fail)
	heeded(t, l, Fail)
	asking := dial(t, l.addr())
	io.WriteString(asking, "GET / HTT")
	if _, err := io.ReadAll(asking); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
	answered := dial(t, l.addr())
	io.WriteString(answered, "GET / HTTP/1.1\r\n\r\n")
	if got, err := io.ReadAll(answered); err != nil || string(got) != unhealthy {
		t.Errorf("%q, %v", got, err)
	}
	wait(t, "the answered one to be dropped", func() bool {
		_, err := answered.Write([]byte("x"))
		return err != nil
	})
}
