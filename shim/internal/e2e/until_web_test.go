package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Tests with web servers over TLS and HTTP/2.

// get makes a request and reads the whole reply.
func get(t *testing.T, rt http.RoundTripper, url string) {
	t.Helper()
	answer, err := (&http.Client{Transport: rt}).Get(url)
	if err != nil {
		t.Errorf("%s: %v", url, err)
		return
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || len(text) == 0 {
		t.Errorf("%s: %v %q, %v", url, answer.Status, text, err)
	}
}

// insecureTLS accepts any certificate. http.Transport modifies its configuration, so
// every transport needs a new one.
func insecureTLS() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// TestUntilTLS: slow requests are told from idle connections without reading the
// encrypted bytes. In one of several hundred runs the reply is acknowledged in the jiffy
// of the request, and the connection seems in flight until --max-silence.
func TestUntilTLS(t *testing.T) {
	t.Parallel()
	for user, stage := range users {
		for name, c := range map[string]tlsCase{
			"slow request":       {[]string{"/", "/slow"}, 0, false, "--max-silence=8", quiet1s},
			"slow first request": {[]string{"/slow"}, 0, false, "--max-silence=8", quiet1s},
			"idle pool":          {nil, 10, false, "--max-silence=3", quiet1s},
			"both":               {[]string{"/", "/slow"}, 10, false, "--max-silence=6", quiet1s},
			"preconnected":       {nil, 0, true, "--max-silence=2", 2 * time.Second}, // the last bytes came from the client, as with a request
		} {
			t.Run(user+"/"+name, func(t *testing.T) {
				t.Parallel()
				c.run(t, stage)
			})
		}
	}
}

type tlsCase struct {
	paths   []string // the last path is requested during the hold
	idle    int      // number of idle connections after one request each
	ahead   bool     // a connection with a TLS handshake and no request
	silence string
	hold    time.Duration // after the last reply or other event
}

func (c tlsCase) run(t *testing.T, stage string) {
	ns := newNamespace(t)
	a := ns.bootUntil(stage, "quiet", append(quiet1sFlags, c.silence), helperCommand("web", "tls", "127.0.0.1:0")...)
	url := "https://" + a.addr("127.0.0.1")
	for range c.idle {
		tr := ns.transport()
		tr.TLSClientConfig = insecureTLS()
		get(t, tr, url)
	}
	last := time.Now()
	if c.ahead {
		conn := tls.Client(ns.dial(a.addr("127.0.0.1")), insecureTLS())
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
	}
	tr := ns.transport()
	tr.TLSClientConfig = insecureTLS()
	for i, path := range c.paths {
		if i < len(c.paths)-1 {
			get(t, tr, url+path)
		}
	}
	start := a.trigger()
	if len(c.paths) > 0 {
		get(t, tr, url+c.paths[len(c.paths)-1])
		a.wantHolding("the reply had just ended")
		last = time.Now()
	} else if !c.ahead {
		last = start
	}
	a.wantHoldSince(last, c.hold-100*time.Millisecond, "quiet")
}

// Frames of HTTP/2, see RFC 9113.
var (
	preface      = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	settingsAck  = "\x00\x00\x00\x04\x01\x00\x00\x00\x00"
	getRoot      = "\x00\x00\x06\x01\x05\x00\x00\x00\x01" + "\x82\x86\x84\x41\x01x"
	getSlow      = "\x00\x00\x0c\x01\x05\x00\x00\x00\x01" + "\x82\x86\x41\x01x\x04\x05/slow"
	ping         = "\x00\x00\x08\x06\x00\x00\x00\x00\x00" + "12345678"
	windowUpdate = "\x00\x00\x04\x08\x00\x00\x00\x00\x00" + "\x00\x00\x00\x10"
)

// dialHTTP2 opens an HTTP/2 connection on which the test writes every frame itself.
func dialHTTP2(a *app) net.Conn {
	a.t.Helper()
	conn := a.dial("127.0.0.1")
	fmt.Fprint(conn, preface)
	return conn.Conn
}

// readFrame skips to the next frame of a type, and returns the frame's flags.
func readFrame(t *testing.T, conn net.Conn, kind byte) (flags byte) {
	t.Helper()
	for {
		var head [9]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatalf("waiting for a frame of type %d: %v", kind, err)
		}
		body := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(conn, body); err != nil {
			t.Fatal(err)
		}
		if head[3] == kind {
			return head[4]
		}
	}
}

const (
	typeData = 0
	typePing = 6
)

// TestUntilHTTP2: an open stream prolongs the hold, an idle connection does not. A last
// frame from the client that is not a request looks like one, until --max-silence.
func TestUntilHTTP2(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last   string // frame sent after all replies
		during func(t *testing.T, conn net.Conn)
		hold   time.Duration // after the last frame or reply
	}{
		"answered":             {ping, nil, 0},
		"a last WINDOW_UPDATE": {windowUpdate, nil, 2 * time.Second},
		"a stream in flight": {getSlow[:5] + "\x00\x00\x00\x03" + getSlow[9:], func(t *testing.T, conn net.Conn) {
			readFrame(t, conn, typeData)
		}, quiet1s},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			silence := "--max-silence=2"
			if c.during != nil {
				silence = "--max-silence=8"
			}
			ns := newNamespace(t)
			a := ns.bootUntil("stage", "quiet", append(quiet1sFlags, silence), helperCommand("web", "h2c", "127.0.0.1:0")...)
			conn := dialHTTP2(a)
			fmt.Fprint(conn, settingsAck, getRoot)
			readFrame(t, conn, typeData)
			fmt.Fprint(conn, ping)
			readFrame(t, conn, typePing)
			time.Sleep(50 * time.Millisecond) // so that the next frame falls into another jiffy
			last := time.Now()
			fmt.Fprint(conn, c.last)
			if c.last == ping {
				readFrame(t, conn, typePing)
			}
			a.trigger()
			if c.during != nil {
				c.during(t, conn)
				a.wantHolding("the stream had just ended")
				last = time.Now()
			}
			a.wantHoldSince(last, c.hold-100*time.Millisecond, "quiet")
		})
	}
}

// TestUntilPinged: Go's HTTP/2 client sends pings, and every ping is traffic, unless pings
// are left out as probes. If pings are further apart than --quiet-for, the hold ends
// between two of them, at the latest --max-silence after the last; else at eight times
// --quiet-for, like any connection that is kept.
func TestUntilPinged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ping   time.Duration
		until  string
		hold   time.Duration
		reason string
	}{
		"seldom":         {4 * time.Second, "quiet", quiet1s, "quiet"},
		"often":          {500 * time.Millisecond, "quiet", 8 * quiet1s, "kept"},
		"often, settled": {500 * time.Millisecond, "settled", quiet1s, "settled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil("stage", c.until, append(quiet1sFlags, "--no-ignore-probes", "--max-silence=2", "--max-delay=12"), helperCommand("web", "tls", "127.0.0.1:0")...)
			tr := ns.transport()
			tr.TLSClientConfig, tr.ForceAttemptHTTP2 = insecureTLS(), true
			tr.HTTP2 = &http.HTTP2Config{SendPingTimeout: c.ping}
			url := "https://" + a.addr("127.0.0.1")
			answer, err := (&http.Client{Transport: tr}).Get(url)
			if err != nil || answer.ProtoMajor != 2 {
				t.Fatalf("reply %v, error %v; want a reply over HTTP/2", answer, err)
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			start := a.trigger()
			a.out.wait(t, "got TERM")
			get(t, tr, url) // the connection was never closed
			a.wantHoldSince(start, c.hold-100*time.Millisecond, c.reason)
		})
	}
}
