package truth

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// httpCases are slow requests, streams and handshakes.
func httpCases() []truthCase {
	return slices.Concat(slowCases(), longCases(), streamCases(), handshakeCases(), limitCases())
}

// webServers are the servers of slow requests without TLS.
var webServers = []struct {
	name string
	*server
}{{"Go", goHTTP}, {"nginx", nginx}, {"HAProxy", haproxy}}

func slowCases() []truthCase {
	type shape struct {
		begun, takes time.Duration
	}
	shapes := []shape{{-500 * ms, 1 * s}, {-8 * s, 11 * s}, {-1 * s, 8 * s}, {2 * s, 7 * s}, {-2 * s, 25 * s}, {3 * s, 20 * s}}
	var cases []truthCase
	for i, server := range webServers {
		for j, at := range shapes {
			path := fmt.Sprintf("/?think=%v", at.takes)
			title := fmt.Sprintf("slow: %g s begun at %s, %s", at.takes.Seconds(), seconds(at.begun), server.name)
			quick := at.begun+at.takes < 10*s
			cases = append(cases,
				truthCase{name: title, server: server.server, quick: quick && j%3 == i, script: func(t *trial) {
					site := t.client().site(fresh)
					t.at(at.begun, func() { site.get(path) })
				}},
				truthCase{name: title + ", kept connection", server: server.server, quick: quick && j%3 == (i+1)%3, script: func(t *trial) {
					site := t.client().site(keep)
					t.at(at.begun-2*s, func() { site.get("/") })
					t.at(at.begun-1*s, func() { site.get("/") })
					t.at(at.begun, func() { site.get(path) })
				}},
			)
		}
	}
	return both(cases...)
}

func longCases() []truthCase {
	return both(
		truthCase{name: "slow: 11 s begun at -8 s with a grace period of 30", server: goHTTP, flags: []string{"--until=quiet", "--grace-period=30"}, quick: true, script: func(t *trial) {
			site := t.client().site(fresh)
			t.at(-8*s, func() { site.get("/?think=11s") })
		}},
		truthCase{name: "slow: 45 s begun at -20 s with a grace period of 120", server: goHTTP, flags: []string{"--until=quiet", "--grace-period=120"}, script: func(t *trial) {
			site := t.client().site(fresh)
			t.at(-20*s, func() { site.get("/?think=45s") })
		}},
		truthCase{name: "slow: 55 s begun at -40 s", server: goHTTP, script: func(t *trial) {
			site := t.client().site(fresh)
			t.at(-40*s, func() { site.get("/?think=55s") })
		}},
		truthCase{name: "slow: 20 s after a POST of two segments", server: goHTTP, script: func(t *trial) {
			site := t.client().site(fresh)
			t.at(-1*s, func() { site.post("/?think=20s", &slowBody{t, 100 * ms, 1000, 2}) })
		}},
		truthCase{name: "slow: 8 s on a kept connection over TLS, Go", server: goTLS, quick: true, quickRemote: true, script: func(t *trial) {
			site := t.client().site(keep)
			t.at(-3*s, func() { site.get("/") })
			t.at(-1*s, func() { site.get("/?think=8s") })
		}},
		truthCase{name: "slow: 8 s on a kept connection over TLS, nginx", server: nginxTLS, script: func(t *trial) {
			site := t.client().site(keep)
			t.at(-3*s, func() { site.get("/") })
			t.at(-1*s, func() { site.get("/?think=8s") })
		}},
		truthCase{name: "slow: 8 s on a fresh connection over TLS, Go", server: goTLS, quick: true, script: func(t *trial) {
			site := t.client().site(fresh)
			t.at(-1*s, func() { site.get("/?think=8s") })
		}},
		truthCase{name: "slow: 8 s on a fresh connection over TLS 1.2, nginx", server: nginxTLS12, script: func(t *trial) {
			site := t.client().site(fresh)
			t.at(-1*s, func() { site.get("/?think=8s") })
		}},
		truthCase{name: "slow: a request that is never answered", server: raw, notBefore: 28 * s, by: 32 * s, script: func(t *trial) {
			c := t.client()
			t.at(-1*s, func() { c.dial().ping("never") })
		}},
	)
}

func streamCases() []truthCase {
	return both(
		truthCase{name: "stream: an upload, 1000 bytes a second, until +7", server: goHTTP, quick: true, script: func(t *trial) {
			site := t.client().site(fresh)
			t.at(-1*s, func() { site.post("/", &slowBody{t, 1 * s, 1000, 8}) })
		}},
		truthCase{name: "stream: an upload in pieces each 3 s until +10", server: nginx, script: func(t *trial) {
			site := t.client().site(fresh)
			t.at(-2*s, func() { site.post("/", &slowBody{t, 3 * s, 5000, 4}) })
		}},
		truthCase{name: "stream: a download, a piece each 500 ms until +8", server: goHTTP, quick: true, script: func(t *trial) {
			site := t.client().site(fresh)
			t.at(-2*s, func() { site.get("/?each=500ms&count=20&size=1000") })
		}},
		truthCase{name: "stream: a download through HAProxy, a piece each 3 s until +10", server: haproxy, script: func(t *trial) {
			site := t.client().site(fresh)
			t.at(-2*s, func() { site.get("/?each=3s&count=4&size=1000") })
		}},
		truthCase{name: "stream: a client that does not read for 10 s", server: raw, quick: true, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() {
				conn := c.dial()
				t.real(func() error {
					if err := conn.send("answer 0s 16000000"); err != nil {
						return err
					}
					t.sleep(10 * s)
					return conn.receive()
				})
			})
		}},
		truthCase{name: "stream: pushes each second that never end", server: raw, by: 50 * s, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() { c.dial().ping("push 1s 50") })
		}},
		truthCase{name: "stream: pushes each 10 s", server: raw, by: 14 * s, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() { c.dial().ping("push 10s 50") })
		}},
		truthCase{name: "stream: messages and replies each second until +6", server: raw, quick: true, slack: 10 * s, script: func(t *trial) {
			chat := sync.OnceValue(t.client().dial)
			t.every(-2*s, 6*s, s, func() { chat().ask("answer 5ms 50") })
		}},
	)
}

func handshakeCases() []truthCase {
	var cases []truthCase
	for _, server := range []struct {
		name string
		*server
		limit limit
	}{{"Go", goTLS, limit{"That a connection only shook hands", late}}, {"nginx", nginxTLS, limit{}}, {"HAProxy", haproxyTLS, limit{}}} {
		cases = append(cases, truthCase{name: "handshake: TLS 1.3 and no request, " + server.name, server: server.server, quick: true, limit: server.limit, script: func(t *trial) {
			for _, c := range t.crowd(3) {
				t.at(-3*s, func() { c.handshake() })
			}
		}})
	}
	return both(cases...)
}

// limitServers are the servers of limitCases, and the flags for finishing what is
// in flight. With overTLS, session tickets look like an answer.
var limitServers = []struct {
	name     string
	plain    *server
	overTLS  *server
	graceful *server
	flags    []string
}{
	{"Go", goHTTP, nil, goGraceful, until("quiet")},
	{"nginx", nginx, nginxTLS, nginx, until("quiet", "--preset=nginx")},
	{"HAProxy", haproxy, haproxyTLS, haproxy, until("quiet", "--preset=haproxy")},
}

// limitCases cannot be known from the kernel's counters. A server that finishes
// the requests in flight loses none all the same.
func limitCases() []truthCase {
	asks := func(path string) func(t *trial) {
		return func(t *trial) {
			site := t.client().site(fresh)
			t.at(-1*s, func() { site.get(path) })
		}
	}
	var cases []truthCase
	for _, server := range limitServers {
		pauses := truthCase{name: "limit: an answer that pauses for 9 s, " + server.name, server: server.plain, limit: limit{"An answer that has begun and pauses", early}, script: asks("/?size=2000&pause=9s")}
		cases = append(cases, pauses, pauses.finishing(server.graceful, server.flags))
		if server.overTLS != nil {
			first := truthCase{name: "limit: 9 s on a fresh connection over TLS 1.3, " + server.name, server: server.overTLS, limit: limit{"A slow first request over TLS 1.3", early}, script: asks("/?think=9s")}
			cases = append(cases, first, first.finishing(server.overTLS, server.flags))
		}
	}
	cases = append(cases, truthCase{name: "limit: two requests in one segment", server: raw, limit: limit{"A request that waits while another is answered", early}, script: pipelined})
	return both(cases...)
}

// finishing returns a case of limit, with a server that finishes the requests in flight.
func (c truthCase) finishing(server *server, flags []string) truthCase {
	c.name = "graceful: " + strings.TrimPrefix(c.name, "limit: ")
	c.server = server
	c.flags = flags
	c.graceful = true
	c.by = 50 * s
	c.limit = limit{}
	return c
}

func pipelined(t *trial) {
	c := t.client()
	t.at(-1*s, func() {
		t.real(func() error {
			conn := c.dial()
			if err := conn.send("answer 20ms 100\nanswer 9s 100"); err != nil {
				return err
			}
			if err := conn.receive(); err != nil {
				return err
			}
			return conn.receive()
		})
	})
}
