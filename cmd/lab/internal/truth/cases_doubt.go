package truth

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// doubtCases are requests that look like something for which no hold should wait: a log's
// stream, a health probe, a hung server, a client that is gone or that never lets go. Each
// was cut once, by a rule that recognized a pattern.
func doubtCases() []truthCase {
	return slices.Concat(partCases(), rhythmCases(), lateBodyCases(), awayCases(), manyKeptCases())
}

// partCases are first requests that come in parts, or after a long time without a byte.
func partCases() []truthCase {
	inParts := func(at time.Duration, count int, period time.Duration) func(t *trial) {
		return func(t *trial) {
			site := t.client().site(fresh)
			t.at(at, func() { site.post("/?think=10s", &slowBody{t, period, 20_000, count}) })
		}
	}
	var cases []truthCase
	for _, on := range []struct {
		name string
		*server
	}{{"Go", goHTTP}, {"nginx", nginx}, {"HAProxy", haproxy}, {"gunicorn", gunicornThreads}} {
		cases = append(cases,
			truthCase{name: "doubt: a POST in five parts a second apart, then 10 s of work, " + on.name, server: on.server, quick: on.name == "Go", script: inParts(-500*ms, 5, s)},
			truthCase{name: "doubt: a POST in eight parts before TERM, then 10 s of work, " + on.name, server: on.server, script: inParts(-5200*ms, 8, 600*ms)},
		)
		for _, idle := range []time.Duration{5 * s, 30 * s} {
			cases = append(cases, truthCase{name: fmt.Sprintf("doubt: preconnected for %v, then a POST of 8 kB, %s", idle, on.name), server: on.server, script: preconnected(idle)})
		}
	}
	return append(cases, far(cases[0]), far(cases[3]))
}

// preconnected plans a connection that is idle before the first request, of several segments.
func preconnected(idle time.Duration) func(t *trial) {
	return func(t *trial) {
		conn := sync.OnceValue(t.client().dial)
		t.at(s-idle, func() { conn() })
		t.at(s, func() {
			body := strings.Repeat("x", 8192)
			conn().ask(fmt.Sprintf("POST /?think=10s HTTP/1.1\r\nHost: truth\r\nContent-Length: %d\r\n\r\n%s", len(body)+1, body))
		})
	}
}

// rhythmCases are clients that call or answer like clockwork.
func rhythmCases() []truthCase {
	streams := func(n int, period time.Duration) func(t *trial) {
		return func(t *trial) {
			for _, c := range t.crowd(n) {
				ch := c.channel()
				t.at(-2*s, func() { ch.stream(int(19*s/period), period) })
			}
		}
	}
	var cases []truthCase
	for _, n := range []int{1, 4} {
		for _, period := range []time.Duration{s, 2 * s, 3 * s} {
			name := fmt.Sprintf("doubt: gRPC, streams with a message each %v until +17: %d", period, n)
			cases = append(cases, truthCase{name: name, server: grpcServer, script: streams(n, period)})
		}
	}
	return append(append(cases, far(cases[0])),
		truthCase{name: "doubt: gRPC, a stream with a message each second until +17, --ignore-probes", server: grpcServer, flags: until("quiet", "--ignore-probes"), limit: limit{"`--ignore-probes` leaves out", early}, script: streams(1, s)},
		truthCase{name: "doubt: six clients of gRPC that call each second until +17", server: grpcServer, script: func(t *trial) {
			for i, c := range t.crowd(6) {
				ch := c.channel()
				t.every(-3*s+time.Duration(i)*160*ms, 17*s, s, func() { ch.call(5 * ms) })
			}
		}},
		truthCase{name: "doubt: a WebSocket with a message each second until +17", server: goWeb, script: func(t *trial) {
			socket := sync.OnceValue(t.client().webSocket)
			t.every(-3*s, 17*s, s, func() { socket().ask("echo", 1) })
		}},
		truthCase{name: "doubt: a worker that polls each 2 s until +17", server: goHTTP, script: func(t *trial) {
			site := t.client().site(keep)
			t.every(-4*s, 17*s, 2*s, func() { site.get("/poll") })
		}},
		truthCase{name: "doubt: curl in a loop, each 1.012 s, until +17", server: goHTTP, quick: true, script: func(t *trial) {
			site := t.client().site(fresh)
			t.every(-4*s, 17*s, 1012*ms, func() { site.get("/") })
		}},
		truthCase{name: "doubt: a program's own ticker on new connections, each second until +17", server: goHTTP, limit: limit{"Whether a steady poller is a probe", early}, script: func(t *trial) {
			site := t.client().site(fresh)
			t.every(-4*s, 17*s, s, func() { site.get("/") })
		}},
		truthCase{name: "doubt: probes each 2 s, 150 ms early or late", server: goHTTP, limit: limit{"A probe that does not come like clockwork", late}, script: func(t *trial) {
			site, r := t.client().site(fresh), newRandom(5)
			for moment := -4 * s; moment < 60*s; moment += 2 * s {
				t.at(moment+time.Duration((2*r.Float64()-1)*float64(150*ms)), func() { site.ping("/") })
			}
		}},
		truthCase{name: "doubt: a probe of the container's own, by short connections each second", server: raw, quick: true, by: 8 * s, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() { c.dial().ping("self 1s") })
		}},
	)
}

// lateBodyCases are requests with a body that the program reads late.
func lateBodyCases() []truthCase {
	megabyte := strings.Repeat("x", 1<<20)
	var cases []truthCase
	for _, on := range []struct {
		name string
		*server
	}{{"Go", goHTTP}, {"nginx", nginx}, {"gunicorn", gunicornThreads}} {
		cases = append(cases,
			truthCase{name: "doubt: a body of 1 MB that is read after 14 s, " + on.name, server: on.server, quick: on.name == "Go", script: func(t *trial) {
				site := t.client().site(fresh)
				t.at(-1*s, func() { site.post("/?late=14s", strings.NewReader(megabyte)) })
			}},
			truthCase{name: "doubt: a body of 1 MB that is read after 14 s, on a kept connection, " + on.name, server: on.server, script: func(t *trial) {
				site := t.client().site(keep)
				t.at(-3*s, func() { site.get("/") })
				t.at(-1*s, func() { site.post("/?late=14s", strings.NewReader(megabyte)) })
			}, limit: tied},
		)
	}
	return append(cases, far(cases[0]))
}

// awayCases are clients that answer again after a time.
func awayCases() []truthCase {
	return both(truthCase{name: "doubt: a client that is away for 11 s in a download", server: raw, script: func(t *trial) {
		c := t.client()
		t.at(-200*ms, func() { c.dial().ask("answer 1s 20000000") })
		t.at(900*ms, c.vanish)
		t.at(11900*ms, c.comeBack)
	}})
}

// manyKeptCases are pools of kept connections that let go late, or never.
func manyKeptCases() []truthCase {
	return []truthCase{
		{name: "doubt: a pool behind a balancer that lets go at +26", server: goHTTP, notBefore: 29900 * ms, by: 32 * s, terms: terms{reason: "quiet"}, script: func(t *trial) {
			t.keepPool(-2*s, t.callers(24, postCaller(http1, "/?think=20ms"))).bursts(-1500*ms, 26*s, 100*ms, 3)
		}},
		{name: "doubt: a pool of 100 connections and 400 requests a second", server: raw, flags: quick1s, notBefore: kept1s, by: kept1s + keptLatest, terms: terms{reason: "kept", mayCut: 100}, script: func(t *trial) {
			t.keepPool(-2*s, t.callers(100, rawCaller("answer 20ms 200"))).random(-500*ms, 400)
		}},
		{name: "doubt: a stream of pushes beside a pool", server: raw, flags: quick1s, notBefore: kept1s, by: kept1s + keptLatest, terms: terms{reason: "kept", mayCut: 24}, script: func(t *trial) {
			rawPool(t)
			c := t.client()
			t.at(-2*s, func() { c.dial().ping("push 200ms 500") })
		}},
	}
}
