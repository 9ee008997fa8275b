package truth

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// lullCases are clients that keep their connections and never let go. The servers die of
// their signal. A request may come in the milliseconds between the sample of a lull and the
// end of the server; a stop at any other moment loses two to five requests.
func lullCases() []truthCase {
	cases := slices.Concat(poolsKeptCases(), besideKeptCases(), lullSlowCases(), lullEndCases(), lullSkipCases())
	for i := range cases {
		c := &cases[i]
		c.precise = true
		c.mayCut = max(c.mayCut, 1)
		if c.remote {
			c.limit = onItsWay
		}
	}
	return cases
}

// onItsWay is a limit of remote clients, and of servers whose end takes milliseconds.
var onItsWay = limit{"A request that is on its way", early}

// quick1s are the usual flags with a shorter silence: clients that never let go hold for
// 8 s, and with the default for 32 s.
var quick1s = until("quiet", "--quiet-for=1")

const (
	kept1s     = 8 * s // 8 x --quiet-for
	kept4s     = 32 * s
	maxLull    = 1 * s            // the search for a lull
	keptLatest = maxLull + 400*ms // after the end of the silence: the search, and a sample
)

// kept is the end of a hold by clients that never let go.
var kept = terms{reason: "kept"}

// poolsKeptCases are pools of 24 connections, with 60 requests a second at random, 20 ms each.
func poolsKeptCases() []truthCase {
	var cases []truthCase
	for _, pool := range []struct {
		name   string
		server *server
		caller func(c *client) caller
		flags  []string
	}{
		{"raw", raw, rawCaller("answer 20ms 200"), nil},
		{"Go", goHTTP, postCaller(http1, "/?think=20ms"), nil},
		{"Go TLS", goTLS, postCaller(http1, "/?think=20ms"), nil},
		{"Go h2", goWebTLS, postCaller(http2, "/?think=20ms"), nil},
		{"Go h2c", goWeb, postCaller(http2, "/?think=20ms"), nil},
		{"HAProxy", haproxy, postCaller(http1, "/?think=20ms"), nil},
		{"nginx TLS", nginxTLS, postCaller(http1, "/?think=20ms"), nil},
		{"gRPC", grpcServer, grpcCaller(20 * ms), nil},
		{"PostgreSQL", postgres, queryCaller("SELECT pg_sleep(0.02)"), []string{"--rewrite=TERM:INT"}},
		{"Redis", redisServer, redisCaller("DEBUG SLEEP 0.002"), nil},
	} {
		known := limit{}
		if pool.server == postgres {
			known = onItsWay
		}
		cases = append(cases, truthCase{name: "kept: a pool of 24 connections, " + pool.name, limit: known, server: pool.server, quick: pool.name == "Go",
			flags: append(slices.Clone(quick1s), pool.flags...), notBefore: kept1s, by: kept1s + keptLatest, terms: kept,
			script: func(t *trial) {
				t.keepPool(-2*s, t.callers(24, pool.caller)).random(-1500*ms, 60)
			}})
	}
	return append(both(cases...),
		truthCase{name: "kept: a pool of 24 connections, Go, the default of --quiet-for", server: goHTTP, notBefore: kept4s, by: kept4s + keptLatest, terms: kept, script: goPool},
		truthCase{name: "kept: a floor of 12 s", server: goHTTP, flags: append(slices.Clone(quick1s), "--delay=12"), notBefore: 12 * s, by: 12*s + keptLatest, terms: kept, script: goPool},
		truthCase{name: "kept: connections opened at +2", server: goHTTP, flags: quick1s, notBefore: 2*s + kept1s, by: 2500*ms + kept1s + keptLatest, terms: kept, script: func(t *trial) {
			goPool(t)
			t.keepPool(2*s, t.callers(24, postCaller(http1, "/?think=20ms"))).random(2500*ms, 30)
		}},
		truthCase{name: "kept: 9000 idle connections beside 20 busy ones", server: raw, notBefore: kept4s, by: kept4s + keptLatest, terms: terms{reason: "kept", mayCut: 4}, script: func(t *trial) {
			crowded(t, 9000)
			t.keepPool(-2*s, t.callers(20, rawCaller("answer 20ms 200"))).random(-1500*ms, 60)
		}},
	)
}

// goPool is the pool of most cases.
func goPool(t *trial) {
	t.keepPool(-2*s, t.callers(24, postCaller(http1, "/?think=20ms"))).random(-1500*ms, 60)
}

// crowded opens idle connections, each with an answered request.
func crowded(t *trial, count int) {
	const together = 20
	for _, c := range t.crowd(together) {
		t.at(-8*s, func() {
			for range count / together {
				c.dial().ping("answer 0s 10")
			}
		})
	}
}

// besideKeptCases are other connections beside clients that never let go.
func besideKeptCases() []truthCase {
	probed := func(period time.Duration) truthCase {
		return truthCase{name: fmt.Sprintf("kept: a probe each %g s", period.Seconds()), server: goHTTP, notBefore: kept4s, by: 8*s + kept4s + keptLatest, terms: kept, script: func(t *trial) {
			goPool(t)
			site := t.client().site(fresh)
			t.every(-2*period+300*ms, 60*s, period, func() { site.ping("/ready") })
		}}
	}
	return []truthCase{
		probed(1 * s),
		probed(10 * s),
		{name: "kept: two servers, the other idle", server: raw, flags: quick1s, notBefore: kept1s, by: kept1s + keptLatest, terms: kept, script: func(t *trial) {
			rawPool(t)
			c := t.client()
			t.at(-3*s, func() { c.short("listen 8099") })
			t.at(-2*s, func() { c.dialPort(8099).ping("answer 20ms 100") })
		}},
		{name: "kept: two servers, new connections to the other each 2 s or so", server: raw, flags: until("quiet", "--max-delay=40"), notBefore: 39 * s, by: 40100 * ms, terms: terms{reason: "ceiling", mayCut: 1}, script: func(t *trial) {
			rawPool(t)
			c, r := t.client(), newRandom(11)
			t.at(-3*s, func() { c.short("listen 8099") })
			for moment := -2 * s; moment < 44*s; moment += s + time.Duration(r.Float64()*2*float64(s)) {
				t.at(moment, func() {
					conn := c.dialPort(8099)
					conn.ping("answer 20ms 100")
					conn.stop()
				})
			}
		}},
		{name: "kept: new connections until +6, at random", server: goHTTP, flags: quick1s, notBefore: 13500 * ms, by: 6*s + kept1s + keptLatest, terms: kept, script: func(t *trial) {
			goPool(t)
			site := t.client().site(fresh)
			t.poisson(-2*s, 6*s, 5, 4, func() { site.get("/?size=2000") })
		}},
		{name: "kept: clients that let go at +12", server: goHTTP, notBefore: 15900 * ms, by: 17 * s, terms: terms{reason: "quiet"}, script: func(t *trial) {
			t.keepPool(-2*s, t.callers(24, postCaller(http1, "/?think=20ms"))).bursts(-1500*ms, 12*s, 100*ms, 3)
		}},
	}
}

func rawPool(t *trial) {
	t.keepPool(-2*s, t.callers(24, rawCaller("answer 20ms 200"))).random(-1500*ms, 60)
}

// lullSlowCases are slow requests, which count, among fast ones.
func lullSlowCases() []truthCase {
	row := func(name string, begun, takes time.Duration, flags []string, quick bool) truthCase {
		return truthCase{name: name, server: goHTTP, flags: flags, quick: quick, terms: kept, script: func(t *trial) {
			goPool(t)
			site := t.client().site(keep)
			t.at(-3*s, func() { site.get("/") })
			t.at(begun, func() { site.get(fmt.Sprintf("/?think=%v", takes)) })
		}}
	}
	within := func(c truthCase, notBefore time.Duration) truthCase {
		c.notBefore, c.by = notBefore, notBefore+keptLatest
		return c
	}
	return []truthCase{
		within(row("lull: a request of 3 s, silent for 2 s when the silence has lasted", 6*s, 3*s, quick1s, true), 9*s),
		within(row("lull: a request of 9 s, begun at +27, the default of --quiet-for", 27*s, 9*s, nil, false), 36*s),
		within(row("lull: a request of 25 s, begun at +12", 12*s, 25*s, nil, false), 37*s),
		within(row("lull: a request of 3 s, begun at +31.5, the default of --quiet-for", 31500*ms, 3*s, nil, false), 34500*ms),
	}
}

// lullEndCases are the other ends at a lull, and lulls that never come.
func lullEndCases() []truthCase {
	end := func(reason string) terms { return terms{reason: reason} }
	return append(
		both(
			truthCase{name: "lull: the ceiling at 8 s", server: goHTTP, flags: until("quiet", "--max-delay=8"), quick: true, notBefore: 7 * s, by: 8100 * ms, terms: end("ceiling"), script: goPool},
			truthCase{name: "lull: a fixed delay of 5 s", server: goHTTP, flags: []string{"--delay=5", "--grace-period=60"}, quick: true, notBefore: 5 * s, by: 5600 * ms, terms: end("elapsed"), script: goPool},
			truthCase{name: "lull: until settled", server: goHTTP, flags: until("settled", "--quiet-for=2"), notBefore: 2 * s, by: 2800 * ms, terms: end("settled"), script: goPool},
		),
		truthCase{name: "lull: bursts of 12 each 60 ms", server: goHTTP, flags: quick1s, notBefore: kept1s, by: kept1s + keptLatest, terms: kept, script: func(t *trial) {
			t.keepPool(-2*s, t.callers(24, postCaller(http1, "/?think=20ms"))).bursts(-1500*ms, 60*s, 60*ms, 12)
		}},
		truthCase{name: "lull: 200 requests a second at random", server: raw, flags: quick1s, notBefore: kept1s, by: kept1s + keptLatest, terms: terms{reason: "kept", mayCut: 2}, script: func(t *trial) {
			t.keepPool(-2*s, t.callers(24, rawCaller("answer 20ms 200"))).random(-1500*ms, 200)
		}},
		truthCase{name: "lull: never, 12 clients that ask again after 20 ms at random", server: raw, flags: quick1s, notBefore: kept1s, by: kept1s + keptLatest, terms: terms{reason: "kept", mayCut: 4}, script: func(t *trial) {
			t.keepPool(-2*s, t.callers(12, rawCaller("answer 20ms 200"))).closedLoop(-1500*ms, 12, 20*ms)
		}},
		truthCase{name: "lull: never, 12 clients that ask again at once", server: raw, flags: quick1s, notBefore: kept1s, by: kept1s + keptLatest, terms: terms{reason: "kept", mayCut: 12}, script: eager},
		truthCase{name: "lull: never, a fixed delay of 5 s", server: raw, flags: []string{"--delay=5", "--grace-period=60"}, notBefore: 5 * s, by: 5600 * ms, terms: terms{reason: "elapsed", mayCut: 12}, script: eager},
	)
}

// eager clients ask again at once: 12 requests are in flight at all times.
func eager(t *trial) {
	t.keepPool(-2*s, t.callers(12, rawCaller("answer 20ms 200"))).closedLoop(-1500*ms, 12, 10*time.Microsecond)
}

// lullSkipCases are signals during the search for a lull.
func lullSkipCases() []truthCase {
	var cases []truthCase
	for _, second := range []struct {
		name   string
		signal syscall.Signal
	}{{"TERM", syscall.SIGTERM}, {"INT", syscall.SIGINT}} {
		row := func(name string, flags []string, moment time.Duration) truthCase {
			return truthCase{name: "lull: " + second.name + " during the search, " + name, server: raw, flags: flags, notBefore: moment - 300*ms, by: moment + 100*ms, terms: terms{mayCut: 12}, script: func(t *trial) {
				eager(t)
				t.at(moment, func() { t.signal(second.signal) })
			}}
		}
		cases = append(cases,
			row("kept", quick1s, kept1s+300*ms),
			row("ceiling", until("quiet", "--max-delay=8"), 7300*ms),
		)
	}
	return cases
}

// signal sends a further signal to lameduck, unless lameduck has exited.
func (t *trial) signal(s syscall.Signal) {
	select {
	case <-t.gone:
	default:
		t.cmd.Process.Signal(s)
	}
}
