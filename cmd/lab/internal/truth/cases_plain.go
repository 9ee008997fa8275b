package truth

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// plainCases are ordinary traffic.
func plainCases() []truthCase {
	return slices.Concat(shortCases(), poolCases(), settledCases())
}

func shortCases() []truthCase {
	type shape struct {
		rate float64
		to   time.Duration
	}
	shapes := []shape{{1, 3 * s}, {1, 8 * s}, {10, 0}, {10, 3 * s}, {10, 8 * s}, {50, 0}, {50, 8 * s}}
	steady := each(shapes, func(at shape) truthCase {
		return truthCase{
			name: fmt.Sprintf("short: %g a second until %v", at.rate, seconds(at.to)), server: raw, quick: at.to == 3*s,
			script: func(t *trial) {
				c := t.client()
				t.steady(-3*s, at.to, at.rate, func() { c.short("answer 20ms 500") })
			},
		}
	})
	random := each([]shape{{3, 6 * s}, {30, 6 * s}, {10, 12 * s}}, func(at shape) truthCase {
		return truthCase{
			name: fmt.Sprintf("short: %g a second at random until %v", at.rate, seconds(at.to)), server: goHTTP, quick: at.rate == 30,
			script: func(t *trial) {
				site := t.client().site(fresh)
				t.poisson(-3*s, at.to, at.rate, 3, func() { site.get("/?think=20ms") })
			},
		}
	})
	return append(both(append(steady, random...)...),
		truthCase{name: "short: no client at all", server: raw, quick: true, script: func(t *trial) {}},
		truthCase{name: "short: one each 7 s until +21", server: raw, limit: limit{"Under thin traffic, only a floor protects", early}, script: func(t *trial) {
			c := t.client()
			t.every(-1*s, 21*s, 7*s, func() { c.short("answer 20ms 500") })
		}},
		truthCase{name: "short: 10 a second until +8, TLS", server: goTLS, quick: true, script: func(t *trial) {
			site := t.client().site(fresh)
			t.steady(-2*s, 8*s, 10, func() { site.get("/") })
		}},
		truthCase{name: "short: 10 a second, never ends", server: goHTTP, flags: until("quiet", "--max-delay=12"), notBefore: 10900 * ms, by: 12500 * ms, script: func(t *trial) {
			site := t.client().site(fresh)
			t.every(-2*s, 30*s, 100*ms, func() { site.ping("/") })
		}},
	)
}

// pool plans clients with kept connections that make a request each period until to.
func pool(t *trial, size int, to, period time.Duration, path string) {
	for i, c := range t.crowd(size) {
		site := c.site(keep)
		first := -3*s + period*time.Duration(i)/time.Duration(size)
		t.every(first, to, period, func() { site.get(path) })
	}
}

func poolCases() []truthCase {
	var cases []truthCase
	for name, server := range map[string]*server{"Go": goHTTP, "Go TLS": goTLS, "nginx": nginx, "nginx TLS": nginxTLS, "HAProxy": haproxy, "HAProxy TLS": haproxyTLS} {
		cases = append(cases,
			truthCase{name: "pool: idle, " + name, server: server, quick: true, script: func(t *trial) {
				pool(t, 10, -1*s, 500*ms, "/")
			}},
			truthCase{name: "pool: busy until +5, " + name, server: server, quick: name == "Go" || name == "nginx TLS", quickRemote: name == "HAProxy", script: func(t *trial) {
				pool(t, 10, 5*s, 700*ms, "/")
			}},
			truthCase{name: "pool: idle after slow answers, " + name, server: server, script: func(t *trial) {
				pool(t, 10, -1*s, 500*ms, "/?think=300ms")
			}},
		)
	}
	slices.SortFunc(cases, func(a, b truthCase) int { return strings.Compare(a.name, b.name) })
	cases = both(cases...)
	for i := range cases {
		if c := &cases[i]; !c.remote && (strings.HasPrefix(c.name, "pool: idle,") || strings.HasPrefix(c.name, "pool: busy")) {
			c.limit = tied
		}
	}
	return cases
}

func settledCases() []truthCase {
	return both(
		truthCase{name: "settled: a pool that stays busy", server: goHTTP, flags: until("settled"), quick: true, script: func(t *trial) {
			site := t.client().site(keep)
			t.every(-3*s, 40*s, 300*ms, func() { site.ping("/") })
		}},
		truthCase{name: "settled: new connections until +5", server: raw, flags: until("settled"), quick: true, script: func(t *trial) {
			c := t.client()
			t.steady(-2*s, 5*s, 5, func() { c.short("answer 20ms 100") })
		}},
		truthCase{name: "drained: idle connections until +10", server: raw, flags: until("drained"), quick: true, notBefore: 10 * s, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() {
				conn := c.dial()
				conn.ask("answer 20ms 100")
				t.wait(10 * s)
				conn.stop()
			})
		}},
		truthCase{name: "drained: an answer that pauses for 8 s", server: raw, flags: until("drained"), quick: true, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() { c.short("answer 20ms 100 8s 100") })
		}},
		truthCase{name: "drained: 10 a second until +3", server: raw, flags: until("drained"), script: func(t *trial) {
			c := t.client()
			t.steady(-2*s, 3*s, 10, func() { c.short("answer 20ms 100") })
		}},
	)
}
