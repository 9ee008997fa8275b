package truth

import "time"

// hungCases are servers without progress, and healthy servers that look alike.
func hungCases() []truthCase {
	hung := func(victim string, rate float64) func(t *trial) {
		return func(t *trial) {
			site := t.client().site(fresh)
			t.every(-3*s, -1500*ms, 200*ms, func() { site.ping("/") })
			t.at(-1200*ms, func() { t.freeze(victim) })
			t.steady(-1*s, 40*s, rate, func() { site.ping("/") })
		}
	}
	return []truthCase{
		{name: "hung: nginx with stopped workers, 5 requests a second", server: nginx, quick: true, by: 13 * s, script: hung("nginx: worker", 5)},
		{name: "hung: nginx with stopped workers, one request each 5 s", server: nginx, by: 13 * s, script: hung("nginx: worker", 0.2)},
		{name: "hung: HAProxy, 5 requests a second", server: haproxy, by: 13 * s, script: hung("haproxy", 5)},
		{name: "hung: Go, 5 requests a second", server: goHTTP, quick: true, by: 13 * s, script: hung("truth serve", 5)},
		{name: "hung: Go, 20 requests a second", server: goHTTP, by: 13 * s, script: hung("truth serve", 20)},
		{name: "hung: requests that wait in a kept pool, since before", server: goHTTP, by: 13 * s, script: hungPool(-1*s, -1500*ms), limit: limit{"That a hung server has read nothing of a request on a kept connection", late}},
		{name: "hung: requests that wait in a kept pool", server: goHTTP, by: 15 * s, script: hungPool(2*s, 500*ms)},
		{name: "hung: never accepts", server: shut, by: 50 * s, script: func(t *trial) {
			c := t.client()
			t.every(-3*s, 40*s, s, func() { c.dial().send("answer 0s 10") })
		}},
		{name: "busy: HAProxy at maxconn with idle tunnels, drained", server: haproxyTunnels, flags: until("drained"), quick: true, script: busyTunnels},
	}
}

// hungPool plans requests at a moment on kept connections, which are idle since an earlier
// moment. Shortly before the requests the server hangs.
func hungPool(moment, idle time.Duration) func(t *trial) {
	return func(t *trial) {
		for _, c := range t.crowd(5) {
			site := c.site(keep)
			t.every(-3*s, idle, 300*ms, func() { site.ping("/") })
			t.at(moment, func() { site.ping("/") })
		}
		t.at(moment-200*ms, func() { t.freeze("truth serve") })
	}
}

// busyTunnels has two tunnels with the end at +14; a request in the accept queue comes next.
func busyTunnels(t *trial) {
	for _, c := range t.crowd(2) {
		t.at(-3*s, func() {
			conn := c.dial()
			t.wait(14 * s)
			conn.stop()
		})
	}
	third := t.client().site(fresh)
	t.at(-1*s, func() { third.get("/") })
}
