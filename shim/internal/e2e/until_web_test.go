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

// Requests in flight are never cut, connections that merely look so do not hold
// for ever.

// get is a request, and its answer whole.
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

// anyCertificate is new each time, since http.Transport writes to it.
func insecureTLS() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// TestUntilTLS: nothing needs to be read to tell a slow request from an idle
// connection. (One in hundreds is so near that the answer is acknowledged in the
// jiffy of the request, and seems in flight until --max-silence.)
func TestUntilTLS(t *testing.T) {
	t.Parallel()
	for user, stage := range users {
		for name, c := range map[string]struct {
			paths   []string // the last one is asked for when the hold has begun
			idle    int      // connections beside it that have had their answer
			ahead   bool     // one that has shaken hands, and asks nothing
			silence string
			hold    time.Duration // after the last answer, or what else came last
		}{
			"slow request":       {[]string{"/", "/slow"}, 0, false, "--max-silence=8", quiet1s},
			"slow first request": {[]string{"/slow"}, 0, false, "--max-silence=8", quiet1s},
			"idle pool":          {nil, 10, false, "--max-silence=3", quiet1s},
			"both":               {[]string{"/", "/slow"}, 10, false, "--max-silence=6", quiet1s},
			"preconnected":       {nil, 0, true, "--max-silence=2", 2 * time.Second}, // what came last is the client's: as if it asked
		} {
			t.Run(user+"/"+name, func(t *testing.T) {
				t.Parallel()
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
					a.wantHolding("the answer may not have been whole")
					last = time.Now()
				} else if !c.ahead {
					last = start
				}
				a.wantHoldSince(last, c.hold-100*time.Millisecond, "quiet")
			})
		}
	}
}

// frames of HTTP/2, see RFC 9113.
var (
	preface      = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	settingsAck  = "\x00\x00\x00\x04\x01\x00\x00\x00\x00"
	getRoot      = "\x00\x00\x06\x01\x05\x00\x00\x00\x01" + "\x82\x86\x84\x41\x01x"
	getSlow      = "\x00\x00\x0c\x01\x05\x00\x00\x00\x01" + "\x82\x86\x41\x01x\x04\x05/slow"
	ping         = "\x00\x00\x08\x06\x00\x00\x00\x00\x00" + "12345678"
	windowUpdate = "\x00\x00\x04\x08\x00\x00\x00\x00\x00" + "\x00\x00\x00\x10"
)

// h2 is a connection of HTTP/2 on which a test says each frame itself.
func dialHTTP2(a *app) net.Conn {
	a.t.Helper()
	conn := a.dial("127.0.0.1")
	fmt.Fprint(conn, preface)
	return conn.Conn
}

// frame reads until a frame of that type, and is its flags.
func readFrame(t *testing.T, conn net.Conn, kind byte) (flags byte) {
	t.Helper()
	for {
		var head [9]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatalf("no frame of type %d: %v", kind, err)
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

// TestUntilHTTP2: a stream holds, a connection that is merely kept alive does not,
// and what looks like a request, but is not, does for --max-silence.
func TestUntilHTTP2(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last   string // said when all was answered
		during func(t *testing.T, conn net.Conn)
		hold   time.Duration // after that, or after the last answer
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
			time.Sleep(50 * time.Millisecond) // not in one jiffy with what follows
			last := time.Now()
			fmt.Fprint(conn, c.last)
			if c.last == ping {
				readFrame(t, conn, typePing)
			}
			a.trigger()
			if c.during != nil {
				c.during(t, conn)
				a.wantHolding("the stream may have been cut")
				last = time.Now()
			}
			a.wantHoldSince(last, c.hold-100*time.Millisecond, "quiet")
		})
	}
}

// TestUntilPinged: Go's own client, which pings. Each ping is traffic; between
// two that are further apart than --quiet-for it is quiet, at the latest when
// the last one has been silent for --max-silence.
func TestUntilPinged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ping   time.Duration
		until  string
		hold   time.Duration
		reason string
	}{
		"seldom":         {4 * time.Second, "quiet", quiet1s, "quiet"},
		"often":          {500 * time.Millisecond, "quiet", 8 * time.Second, "ceiling"},
		"often, settled": {500 * time.Millisecond, "settled", quiet1s, "settled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil("stage", c.until, append(quiet1sFlags, "--max-silence=2", "--max-delay=8"), helperCommand("web", "tls", "127.0.0.1:0")...)
			tr := ns.transport()
			tr.TLSClientConfig, tr.ForceAttemptHTTP2 = insecureTLS(), true
			tr.HTTP2 = &http.HTTP2Config{SendPingTimeout: c.ping}
			url := "https://" + a.addr("127.0.0.1")
			answer, err := (&http.Client{Transport: tr}).Get(url)
			if err != nil || answer.ProtoMajor != 2 {
				t.Fatal(answer, err)
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			start := a.trigger()
			a.out.wait(t, "got TERM")
			get(t, tr, url) // the connection was there all the time
			a.wantHoldSince(start, c.hold-100*time.Millisecond, c.reason)
		})
	}
}
