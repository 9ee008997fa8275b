package truth

import "time"

// h2Cases are connections of HTTP/2.
func h2Cases() []truthCase {
	var cases []truthCase
	for _, kind := range []stack{goStack, nginxStack, haproxyStack, apacheStack, caddyStack, nodeStack} {
		cases = append(cases, h2Over(kind.name+", h2", kind.h2)...)
		if kind.name == "Go" || kind.name == "nginx" {
			cases = append(cases, h2Over(kind.name+", h2c", kind.h2c)...)
		}
	}
	cases = append(cases, h2Greetings()...)
	cases = append(cases, h2Pings()...)
	return append(cases, h2Bodies()...)
}

func h2Over(name string, server *server) []truthCase {
	cases := []truthCase{
		{name: "limit: 9 s on a fresh connection, " + name, server: server, limit: framing, script: request(-1*s, http2, "/?think=9s")},
		{name: "slow: 8 s on a kept connection, " + name, server: server, quick: name == "nginx, h2", script: secondRequest(-1*s, http2, "/?think=8s")},
		{name: "pool: idle, " + name, server: server, quickRemote: name == "Go, h2", limit: tied, script: pooled(10, http2, -1*s, "/")},
	}
	if name == "Go, h2" || name == "nginx, h2" {
		for _, c := range cases {
			cases = append(cases, farKnown(c))
		}
	}
	return cases
}

// h2Greetings are connections with few requests.
func h2Greetings() []truthCase {
	var cases []truthCase
	for _, kind := range []stack{goStack, nginxStack, nodeStack} {
		cases = append(cases,
			truthCase{name: "handshake: HTTP/2 and no request, " + kind.name, server: kind.h2, limit: greeted, script: func(t *trial) {
				for _, c := range t.crowd(3) {
					t.at(-3*s, c.greetH2)
				}
			}},
			truthCase{name: "pool: idle after one answer each, h2, " + kind.name, server: kind.h2, limit: greeted, script: oneAnswer},
			far(truthCase{name: "pool: idle after one answer each, h2, " + kind.name, server: kind.h2, limit: greeted, script: oneAnswer}),
			truthCase{name: "pool: busy until +5, h2, " + kind.name, server: kind.h2, script: pooled(10, http2, 5*s, "/?think=20ms")},
		)
	}
	tls12 := wire{keep: true, h2: true, tls12: true}
	return append(cases,
		truthCase{name: "limit: 9 s on a fresh connection, h2, TLS 1.2, Go", server: goWebTLS, limit: framing, script: request(-1*s, tls12, "/?think=9s")},
		truthCase{name: "limit: 9 s on a fresh connection, h2, TLS 1.2, nginx", server: nginxH2, limit: framing, script: request(-1*s, tls12, "/?think=9s")},
	)
}

// oneAnswer plans clients with a single request each.
func oneAnswer(t *trial) {
	for _, c := range t.crowd(10) {
		site := c.over(http2)
		t.at(-2*s, func() { site.get("/") })
	}
}

// h2Pings are PINGs on idle connections, and during a slow request.
func h2Pings() []truthCase {
	pinging := wire{keep: true, h2: true, ping: 2 * s}
	var cases []truthCase
	for _, kind := range []stack{goStack, nginxStack, haproxyStack} {
		cases = append(cases,
			truthCase{name: "ping: an idle connection, each 2 s, " + kind.name, server: kind.h2, limit: pings2s, slack: patience(2 * s), script: func(t *trial) {
				site := t.client().over(pinging)
				t.at(-5*s, func() { site.get("/") })
			}},
			truthCase{name: "ping: a slow request of 14 s on a kept connection, a PING each 6 s, " + kind.name, server: kind.h2, script: slowWithPings},
		)
	}
	return append(cases, far(cases[0]), far(cases[1]))
}

// slowWithPings plans a slow request on a kept connection whose client sends a PING after
// 6 s of silence.
func slowWithPings(t *trial) {
	site := t.client().over(wire{keep: true, h2: true, ping: 6 * s})
	t.at(-3*s, func() { site.get("/") })
	t.at(-2*s, func() { site.get("/?think=14s") })
}

// h2Bodies are bodies, and streams beside each other.
func h2Bodies() []truthCase {
	var cases []truthCase
	for _, kind := range []stack{goStack, nginxStack} {
		cases = append(cases,
			truthCase{name: "limit: 9 s beside fast requests until +1, h2, " + kind.name, server: kind.h2, limit: beside, script: slowBesideFast(1 * s)},
			truthCase{name: "stream: 9 s beside fast requests until +8, h2, " + kind.name, server: kind.h2, script: slowBesideFast(8 * s)},
			truthCase{name: "stream: an upload in pieces each 3 s until +7, h2, " + kind.name, server: kind.h2, limit: tied, script: slowUpload(3*s, 3)},
			truthCase{name: "limit: an upload in pieces each 6 s until +11, h2, " + kind.name, server: kind.h2, limit: uploads, by: 45 * s, script: slowUpload(6*s, 2)},
			truthCase{name: "stream: a download, a piece each 3 s until +10, h2, " + kind.name, server: kind.h2, script: request(-2*s, http2, "/?each=3s&count=4&size=1000")},
			truthCase{name: "stream: a download that the client reads slowly until +8, h2, " + kind.name, server: kind.h2, limit: updated, script: slowReader(http2)},
		)
	}
	return cases
}

// slowBesideFast plans a request of 9 s and fast ones on the same connection.
func slowBesideFast(to time.Duration) func(t *trial) {
	return func(t *trial) {
		site := t.client().over(http2)
		t.at(-2*s, func() { site.get("/") })
		t.at(-1*s, func() { site.get("/?think=9s") })
		t.every(-900*ms, to, 300*ms, func() { site.get("/") })
	}
}

// slowUpload plans an upload over HTTP/2.
func slowUpload(period time.Duration, count int) func(t *trial) {
	return func(t *trial) {
		site := t.client().over(http2)
		t.at(-1*s, func() { site.post("/", &slowBody{t, period, 5000, count}) })
	}
}
