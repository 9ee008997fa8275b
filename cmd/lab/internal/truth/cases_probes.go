package truth

import (
	"fmt"
	"slices"
	"time"
)

// probeCases are health probes, for which no hold should wait, and requests like probes,
// for which a hold should.
func probeCases() []truthCase {
	return slices.Concat(loneProbes(), mixedProbes(), pollers())
}

// probePeriods are the periods of probes.
var probePeriods = []time.Duration{1 * s, 2 * s, 3 * s, 4 * s, 5 * s, 10 * s}

// patience returns how long after the last request probes may hold: 10 s, or until four
// have come, with 1 s as in every window. Probes that are rarer than --quiet-for leave room
// for a silence.
func patience(period time.Duration) time.Duration {
	if period > defaultQuietFor {
		return 11 * s
	}
	return max(10*s, 4*period+2*s) + 1*s
}

func loneProbes() []truthCase {
	short := each(probePeriods, func(period time.Duration) truthCase {
		return truthCase{
			name: fmt.Sprintf("probes: each %g s, short connections", period.Seconds()), server: goHTTP,
			quick: period <= 2*s || period == 4*s, slack: patience(period),
			script: func(t *trial) {
				site := t.client().site(fresh)
				t.every(-2*period, 60*s, period, func() { site.ping("/") })
			},
		}
	})
	kept := each(probePeriods, func(period time.Duration) truthCase {
		return truthCase{
			name: fmt.Sprintf("probes: each %g s, a kept connection", period.Seconds()), server: goHTTP,
			limit: keptProbe, slack: patience(period), script: probeKept(period),
		}
	})
	ignored := each(probePeriods, func(period time.Duration) truthCase {
		return truthCase{
			name: fmt.Sprintf("probes: each %g s, a kept connection, --ignore-probes", period.Seconds()), server: goHTTP,
			flags: until("quiet", "--ignore-probes"), quick: period <= 2*s, slack: patience(period), script: probeKept(period),
		}
	})
	return append(both(slices.Concat(short, kept, ignored)...),
		truthCase{name: "probes: HAProxy's, each 2 s", server: haproxy, quick: true, slack: patience(2 * s), script: func(t *trial) {
			site := t.client().site(fresh)
			t.every(-5*s, 60*s, 2*s, func() { site.ping("/static") })
		}},
		truthCase{name: "probes: nginx over TLS, each second", server: nginxTLS, slack: patience(s), script: func(t *trial) {
			site := t.client().site(fresh)
			t.every(-5*s, 60*s, s, func() { site.ping("/static") })
		}},
		truthCase{name: "probes: two kubelet probes, each 2 s and 3 s", server: goHTTP, slack: patience(3 * s), script: func(t *trial) {
			kubelet := t.client()
			ready, alive := kubelet.site(fresh), kubelet.site(fresh)
			t.every(-5*s, 60*s, 2*s, func() { ready.ping("/ready") })
			t.every(-4500*ms, 60*s, 3*s, func() { alive.ping("/a/longer/path/for/liveness") })
		}},
		truthCase{name: "probes: from three checkers, each 2 s", server: goHTTP, slack: patience(2 * s), script: func(t *trial) {
			for i, c := range t.crowd(3) {
				site := c.site(fresh)
				t.every(-5*s+time.Duration(i)*700*ms, 60*s, 2*s, func() { site.ping("/") })
			}
		}},
	)
}

// keptProbe is a limit of probes that use a connection again.
var keptProbe = limit{"on a kept connection", late}

func probeKept(period time.Duration) func(t *trial) {
	return func(t *trial) {
		site := t.client().site(keep)
		t.every(-2*period, 60*s, period, func() { site.ping("/") })
	}
}

func mixedProbes() []truthCase {
	return both(each([]time.Duration{1 * s, 2 * s, 3 * s}, func(period time.Duration) truthCase {
		return truthCase{
			name: fmt.Sprintf("probes: each %g s, besides random requests until +5", period.Seconds()), server: goHTTP,
			quick: period == 2*s, slack: patience(period),
			script: func(t *trial) {
				kubelet, clients := t.client().site(fresh), t.client().site(fresh)
				t.every(-2*period, 60*s, period, func() { kubelet.ping("/ready") })
				t.poisson(-2*s, 5*s, 10, 7, func() { clients.get("/?size=2000") })
			},
		}
	})...)
}

func pollers() []truthCase {
	return append(
		both(each([]time.Duration{1 * s, 2 * s}, func(period time.Duration) truthCase {
			return truthCase{
				name: fmt.Sprintf("polls: one client each %g s, which goes away at +5", period.Seconds()), server: goHTTP,
				quick: true, slack: patience(period),
				script: func(t *trial) {
					site := t.client().site(keep)
					t.every(-4*s, 5*s, period, func() { site.get("/poll") })
				},
			}
		})...),
		truthCase{name: "polls: 12 clients, each 2 s, until +15", server: goHTTP, quick: true, slack: 10 * s, script: func(t *trial) {
			for i, c := range t.crowd(12) {
				site := c.site(keep)
				t.every(-4*s+time.Duration(i)*170*ms, 15*s, 2*s, func() { site.get("/poll") })
			}
		}},
		truthCase{name: "polls: 12 clients, each 3 s on short connections, until +15", server: raw, slack: 14 * s, script: func(t *trial) {
			for i, c := range t.crowd(12) {
				t.every(-4*s+time.Duration(i)*230*ms, 15*s, 3*s, func() { c.short("answer 5ms 100") })
			}
		}},
		truthCase{name: "polls: 12 clients let go one after the other until +15", server: goHTTP, slack: 10 * s, script: func(t *trial) {
			for i, c := range t.crowd(12) {
				site := c.site(keep)
				t.every(-4*s, time.Duration(i+4)*s, 2*s, func() { site.get("/poll") })
			}
		}},
	)
}
