package truth

import (
	"slices"
	"sync"
	"time"
)

// stack is a web server in its configurations. Without h2c the server does not speak
// HTTP/2 without TLS.
type stack struct {
	name    string
	plain   *server
	overTLS *server
	h2      *server // over TLS
	h2c     *server
}

var (
	goStack      = stack{"Go", goWeb, goWebTLS, goWebTLS, goWeb}
	nginxStack   = stack{"nginx", nginxChat, nginxTLS, nginxH2, nginxH2C}
	haproxyStack = stack{"HAProxy", haproxy, haproxyTLS, haproxyH2, haproxyH2C}
	apacheStack  = stack{"Apache", apache, apacheTLS, apacheTLS, apache}
	caddyStack   = stack{"Caddy", caddy, caddyTLS, caddyTLS, caddy}
	nodeStack    = stack{"Node", node, nodeTLS, nodeH2, nil}
)

// Words of docs/limits.md.
var (
	tickets = limit{"A slow first request over TLS 1.3", early}
	pauses  = limit{"An answer that has begun and pauses", early}
	beside  = limit{"A request that waits while another is answered", early}
	uploads = limit{"A slow upload over HTTP/2, and a client that pauses", early}
	framing = limit{"A slow first request over HTTP/2", early}
	greeted = limit{"That an HTTP/2 connection with at most one request is idle", late}
	updated = limit{"a WINDOW_UPDATE that follows a long answer", late}
	pings2s = limit{"HTTP/2's own traffic", late}
	tied    = limit{"That a kept connection is idle", late} // near clients alone
)

// webCases are Apache, Caddy and Node in the shapes of cases_http.go and cases_plain.go,
// and further uses of HTTP/1.1.
func webCases() []truthCase {
	var cases []truthCase
	for _, kind := range []stack{apacheStack, caddyStack, nodeStack} {
		shapes := slices.Concat(slowWeb(kind), idleWeb(kind))
		if kind.name == "Node" {
			for _, c := range shapes {
				shapes = append(shapes, farKnown(c))
			}
		}
		cases = append(cases, shapes...)
	}
	return slices.Concat(cases, versionCases(), bodyCases(), halfCloseWeb(), pipelineCases(), socketCases(), tunnelCases())
}

// request plans a request, which counts, on a new connection.
func request(moment time.Duration, w wire, path string) func(t *trial) {
	return func(t *trial) {
		site := t.client().over(w)
		t.at(moment, func() { site.get(path) })
	}
}

// secondRequest plans a request, which counts, a second after a fast request on the same
// connection.
func secondRequest(moment time.Duration, w wire, path string) func(t *trial) {
	return func(t *trial) {
		site := t.client().over(w)
		t.at(moment-time.Second, func() { site.get("/") })
		t.at(moment, func() { site.get(path) })
	}
}

// pooled plans clients with a connection each and a request each half second until to.
func pooled(size int, w wire, to time.Duration, path string) func(t *trial) {
	return func(t *trial) {
		for i, c := range t.crowd(size) {
			site := c.over(w)
			t.every(-3*s+time.Duration(i)*50*ms, to, 500*ms, func() { site.get(path) })
		}
	}
}

// handshakes plans connections over TLS without a request.
func handshakes(t *trial, w wire) {
	for _, c := range t.crowd(3) {
		t.at(-3*s, func() { c.over(w).handshake() })
	}
}

// farKnown returns the remote twin of a case, without the limit of ties: a round trip takes
// ten ticks.
func farKnown(c truthCase) truthCase {
	if c.limit == tied {
		c.limit = limit{}
	}
	return far(c)
}

func slowWeb(kind stack) []truthCase {
	return []truthCase{
		{name: "slow: 7 s begun at -1.0 s, " + kind.name, server: kind.plain, script: request(-1*s, http1, "/?think=7s")},
		{name: "slow: 20 s begun at -2.0 s, kept connection, " + kind.name, server: kind.plain, script: secondRequest(-2*s, http1, "/?think=20s")},
		{name: "slow: 8 s on a kept connection over TLS, " + kind.name, server: kind.overTLS, script: secondRequest(-1*s, http1, "/?think=8s")},
		{name: "limit: 9 s on a fresh connection over TLS 1.3, " + kind.name, server: kind.overTLS, limit: tickets, script: request(-1*s, http1, "/?think=9s")},
		{name: "limit: an answer that pauses for 9 s, " + kind.name, server: kind.plain, limit: pauses, script: request(-1*s, http1, "/?size=2000&pause=9s")},
		{name: "stream: a download, a piece each 3 s until +10, " + kind.name, server: kind.plain, script: request(-2*s, http1, "/?each=3s&count=4&size=1000")},
		{name: "stream: an upload in pieces each 3 s until +10, " + kind.name, server: kind.plain, limit: tied, script: func(t *trial) {
			site := t.client().over(http1)
			t.at(-2*s, func() { site.post("/", &slowBody{t, 3 * s, 5000, 4}) })
		}},
	}
}

func idleWeb(kind stack) []truthCase {
	quick := kind.name == "Node"
	var known limit
	if kind.name == "Caddy" {
		known = limit{"That a connection only shook hands", late}
	}
	return []truthCase{
		{name: "pool: idle, " + kind.name, server: kind.plain, quick: quick, limit: tied, script: pooled(10, http1, -1*s, "/")},
		{name: "pool: idle, TLS, " + kind.name, server: kind.overTLS, limit: tied, script: pooled(10, http1, -1*s, "/")},
		{name: "pool: idle after slow answers, " + kind.name, server: kind.plain, limit: tied, script: pooled(10, http1, -1*s, "/?think=300ms")},
		{name: "pool: busy until +5, TLS, " + kind.name, server: kind.overTLS, limit: tied, script: pooled(10, http1, 5*s, "/?think=20ms")},
		{name: "handshake: TLS 1.3 and no request, " + kind.name, server: kind.overTLS, limit: known, script: func(t *trial) { handshakes(t, http1) }},
		{name: "probes: each 2s, short connections, " + kind.name, server: kind.plain, quick: quick, slack: patience(2 * s), script: func(t *trial) {
			site := t.client().site(fresh)
			t.every(-4*s, 60*s, 2*s, func() { site.ping("/") })
		}},
		{name: "short: 10 a second until +3, TLS, " + kind.name, server: kind.overTLS, script: func(t *trial) {
			site := t.client().site(fresh)
			t.steady(-2*s, 3*s, 10, func() { site.get("/?think=20ms") })
		}},
	}
}

// versionCases are TLS 1.2, and connections opened long before their first use.
func versionCases() []truthCase {
	tls12 := wire{keep: true, tls12: true}
	var cases []truthCase
	for _, kind := range []stack{goStack, haproxyStack, nodeStack} {
		cases = append(cases,
			truthCase{name: "slow: 8 s on a fresh connection over TLS 1.2, " + kind.name, server: kind.overTLS, quick: kind.name == "HAProxy", script: request(-1*s, tls12, "/?think=8s")},
			truthCase{name: "handshake: TLS 1.2 and no request, " + kind.name, server: kind.overTLS, script: func(t *trial) { handshakes(t, tls12) }},
		)
	}
	return append(cases,
		truthCase{name: "handshake: a connection opened at -3 s, used at +3 s, nginx", server: nginx, quick: true, script: func(t *trial) {
			early := sync.OnceValue(t.client().dial)
			t.at(-3*s, func() { early() })
			t.at(3*s, func() { early().getAll("/?think=2s") })
		}},
		truthCase{name: "pool: idle, TLS 1.2, nginx", server: nginxTLS12, limit: tied, script: pooled(10, tls12, -1*s, "/")},
		truthCase{name: "pool: idle, TLS 1.2, Node", server: nodeTLS, limit: tied, script: pooled(10, tls12, -1*s, "/")},
	)
}

// bodyCases are 100-continue, and bodies to slow readers.
func bodyCases() []truthCase {
	expecting := wire{keep: true, expect: true}
	var cases []truthCase
	for _, kind := range []stack{goStack, nginxStack, haproxyStack, apacheStack} {
		cases = append(cases,
			truthCase{name: "stream: 100-continue, and an answer 8 s after the body, " + kind.name, server: kind.plain, quick: kind.name == "Go", script: func(t *trial) {
				site := t.client().over(expecting)
				t.at(-1*s, func() { site.postExpecting("/?think=8s", &slowBody{t, 300 * ms, 1000, 2}) })
			}},
			truthCase{name: "limit: 100-continue, and a body that comes 8 s later, " + kind.name, server: kind.plain, limit: uploads, script: func(t *trial) {
				site := t.client().over(expecting)
				t.at(-1*s, func() { site.postExpecting("/", &slowBody{t, 8 * s, 1000, 1}) })
			}},
		)
	}
	return append(cases,
		truthCase{name: "stream: a download that the client reads slowly until +8, nginx", server: nginx, script: slowReader(http1)},
		truthCase{name: "stream: a download that the client reads slowly until +8, TLS, Node", server: nodeTLS, script: slowReader(http1)},
	)
}

// slowReader plans a download; the client reads 4 MB a second.
func slowReader(w wire) func(t *trial) {
	return func(t *trial) {
		site := t.client().over(w)
		t.at(-1*s, func() { site.download("/?size=36000000", 2000000, 500*ms) })
	}
}

// halfCloseWeb are clients that close their half after the request. nginx and
// Node drop such a request.
func halfCloseWeb() []truthCase {
	var cases []truthCase
	for _, kind := range []stack{goStack, haproxyStack, apacheStack, caddyStack} {
		cases = append(cases, truthCase{name: "half-close: 7 s begun at -1.0 s, " + kind.name, server: kind.plain, quick: kind.name == "HAProxy", script: func(t *trial) {
			c := t.client()
			t.at(-1*s, func() { c.dial().getClosing("/?think=7s") })
		}})
	}
	return cases
}

func pipelineCases() []truthCase {
	var cases []truthCase
	for _, kind := range []stack{goStack, nginxStack, nodeStack} {
		cases = append(cases,
			truthCase{name: "pipeline: 8 s in two requests of one segment, " + kind.name, server: kind.plain, limit: beside, script: func(t *trial) {
				c := t.client()
				t.at(-1*s, func() { c.dial().getAll("/?think=4s", "/?think=4s") })
			}},
			truthCase{name: "limit: a slow request after a fast one in one segment, " + kind.name, server: kind.plain, limit: beside, script: func(t *trial) {
				c := t.client()
				t.at(-1*s, func() { c.dial().getAll("/", "/?think=9s") })
			}},
		)
	}
	return cases
}

// socketCases are WebSockets.
func socketCases() []truthCase {
	var cases []truthCase
	for _, kind := range []stack{goStack, nginxStack, haproxyStack, apacheStack, caddyStack} {
		goes := kind.name == "Go"
		cases = append(cases, truthCase{name: "websocket: messages and replies at random until +6, " + kind.name, server: kind.plain, quick: goes, script: func(t *trial) {
			socket := sync.OnceValue(t.client().webSocket)
			t.at(-3*s, func() { socket() })
			for i, moment := range []time.Duration{-2, -1, 1, 2, 4, 6} {
				t.at(moment*s+time.Duration(i*i)*30*ms, func() { socket().ask("20ms", 1) })
			}
		}})
	}
	return append(cases,
		truthCase{name: "websocket: pushes each 700 ms until +6, Go", server: goWeb, slack: 10 * s, script: func(t *trial) {
			c := t.client()
			t.at(-1*s, func() { c.webSocket().ask("700ms 10", 10) })
		}},
		truthCase{name: "websocket: idle, nginx", server: nginxChat, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() { c.webSocket().ask("20ms", 1) })
		}},
		truthCase{name: "websocket: a reply after 8 s, Caddy", server: caddy, script: func(t *trial) {
			socket := sync.OnceValue(t.client().webSocket)
			t.at(-2*s, func() { socket().ask("20ms", 1) })
			t.at(-1*s, func() { socket().ask("8s", 1) })
		}},
		truthCase{name: "websocket: a ping frame each 2 s, Go", server: goWeb, limit: keptProbe, slack: patience(2 * s), script: func(t *trial) {
			c := t.client()
			t.at(-5*s, func() { c.webSocket().keepAlive(2 * s) })
		}},
		truthCase{name: "limit: websocket ping frames of 10 clients each 3 s, HAProxy", server: haproxy, limit: keptProbe, slack: patience(3 * s), script: func(t *trial) {
			for i, c := range t.crowd(10) {
				t.at(-5*s+time.Duration(i)*110*ms, func() { c.webSocket().keepAlive(3 * s) })
			}
		}},
	)
}

// tunnelCases are tunnels through Apache, with CONNECT.
func tunnelCases() []truthCase {
	return []truthCase{
		{name: "tunnel: busy until +5, Apache", server: apache, script: func(t *trial) {
			tunnel := sync.OnceValue(t.client().tunnel)
			t.every(-2*s, 5*s, 700*ms, func() { tunnel().getAll("/?think=50ms") })
		}},
		{name: "tunnel: a slow request of 8 s, Apache", server: apache, quick: true, script: func(t *trial) {
			c := t.client()
			t.at(-1*s, func() { c.tunnel().getAll("/?think=8s") })
		}},
		{name: "tunnel: idle, Apache", server: apache, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() { c.tunnel().getAll("/") })
		}},
	}
}
