package truth

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// rawCases are connections that real clients seldom make on demand.
func rawCases() []truthCase {
	return slices.Concat(synCases(), vanishedCases(), halfCloseCases(), oneWayCases(), checkCases(), listenCases())
}

// beforeTERM are the moments at which a case begins. Leads of 20 s and more are too slow for
// the quick selection.
var beforeTERM = []time.Duration{1 * s, 5 * s, 20 * s, 60 * s}

func synCases() []truthCase {
	return both(append(
		each(beforeTERM, func(lead time.Duration) truthCase {
			return truthCase{
				name: fmt.Sprintf("SYN: one that nobody completes, %g s before", lead.Seconds()), server: raw, quick: lead == 5*s, quickRemote: lead == 1*s,
				script: func(t *trial) { t.at(-lead, func() { t.check(syn(1)) }) },
			}
		}),
		truthCase{name: "SYN: one a second until +45", server: raw, quick: true, script: func(t *trial) {
			next := counter()
			t.every(-5*s, 45*s, s, func() { t.check(syn(next())) })
		}},
		truthCase{name: "SYN: one each 100 ms until +45, besides requests until +3", server: raw, script: func(t *trial) {
			c, next := t.client(), counter()
			t.every(-5*s, 45*s, 100*ms, func() { t.check(syn(next())) })
			t.steady(-2*s, 3*s, 5, func() { c.short("answer 20ms 100") })
		}},
	)...)
}

// counter returns a function that returns 1, 2 and so on.
func counter() func() int {
	n := 0
	return func() int { n++; return n }
}

func vanishedCases() []truthCase {
	unacknowledged := each(beforeTERM, func(lead time.Duration) truthCase {
		return truthCase{
			name: fmt.Sprintf("vanished: with an unacknowledged answer, %g s before", lead.Seconds()), server: raw, quick: lead == 1*s, quickRemote: lead == 5*s, by: max(5*s, 19*s-lead),
			script: func(t *trial) {
				c := t.client()
				t.at(-lead, func() {
					c.dial().send("answer 300ms 3000")
					time.Sleep(150 * ms)
					c.vanish()
				})
			},
		}
	})
	return both(append(unacknowledged,
		truthCase{name: "vanished: in the middle of a download", server: raw, by: 17 * s, script: func(t *trial) {
			c := t.client()
			t.at(-3*s, func() {
				c.dial().send("answer 0s 20000000")
				time.Sleep(5 * ms)
				c.vanish()
			})
		}},
		truthCase{name: "vanished: while the request waits, answered at +3", server: raw, by: 22 * s, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() { c.dial().send("answer 5s 3000") })
			t.at(-1*s, c.vanish)
		}},
		truthCase{name: "vanished: idle after an answer", server: raw, quick: true, quickRemote: true, script: func(t *trial) {
			c := t.client()
			t.at(-5*s, func() { c.dial().ask("answer 20ms 100") })
			t.at(-2*s, c.vanish)
		}},
	)...)
}

func halfCloseCases() []truthCase {
	asks := func(line string, at time.Duration) func(t *trial) {
		return func(t *trial) {
			c := t.client()
			t.at(at, func() { c.dial().askClosing(line) })
		}
	}
	return both(
		truthCase{name: "half-close: after a request that takes 9 s", server: raw, quick: true, quickRemote: true, script: asks("answer 9s 100", -1*s)},
		truthCase{name: "half-close: after a request that takes 25 s", server: raw, script: asks("answer 25s 100", -2*s)},
		truthCase{name: "half-close: after a request made at +2 that takes 7 s", server: raw, script: asks("answer 7s 100", 2*s)},
		truthCase{name: "half-close: Go net/http, 9 s", server: goHTTP, quick: true, script: asks("GET /?think=9s HTTP/1.0\r\n\r", -1*s)},
		truthCase{name: "half-close: HAProxy, 9 s", server: haproxy, script: asks("GET /?think=9s HTTP/1.0\r\n\r", -1*s)},
	)
}

// stream is a limit of streams that nobody answers.
var stream = limit{"That nobody answers a stream", late}

func oneWayCases() []truthCase {
	sends := func(from, to, period time.Duration) func(t *trial) {
		return func(t *trial) {
			stream := sync.OnceValue(t.client().dial)
			t.every(from, to, period, func() { stream().send("2026-01-02 a line of a log, which nobody answers") })
		}
	}
	return both(
		truthCase{name: "one-way: a log shipper, one line a second, never ends", server: receiver, limit: stream, script: sends(-3*s, 60*s, s)},
		truthCase{name: "one-way: a log shipper, ten lines a second, never ends", server: receiver, limit: stream, script: sends(-3*s, 60*s, 100*ms)},
		truthCase{name: "one-way: metrics each second until +6", server: receiver, notBefore: 4900 * ms, limit: stream, script: sends(-3*s, 6*s, s)},
		truthCase{name: "one-way: metrics each second until +6, settled", server: receiver, flags: until("settled"), quick: true, script: sends(-3*s, 6*s, s)},
		truthCase{name: "one-way: a heartbeat each 6 s", server: receiver, limit: stream, script: sends(-3*s, 60*s, 6*s)},
		truthCase{name: "one-way: a heartbeat each 10 s", server: receiver, limit: stream, script: sends(-3*s, 60*s, 10*s)},
	)
}

func checkCases() []truthCase {
	return both(
		truthCase{name: "checks: TCP, from three addresses, one each 1.7 s", server: raw, quick: true, script: func(t *trial) {
			for i, c := range t.crowd(3) {
				t.every(-5*s+time.Duration(i)*1700*ms, 49*s, 5100*ms, c.check)
			}
		}},
		truthCase{name: "checks: TCP, each second, besides requests until +4", server: raw, quick: true, script: func(t *trial) {
			balancer, c := t.client(), t.client()
			t.every(-5*s, 49*s, s, balancer.check)
			t.steady(-2*s, 4*s, 10, func() { c.short("answer 20ms 100") })
		}},
		truthCase{name: "checks: TCP, each second, ended with a RST", server: raw, script: func(t *trial) {
			c := t.client()
			t.every(-5*s, 49*s, s, func() { c.dial().reset() })
		}},
		truthCase{name: "checks: a port scan each 3 s", server: goHTTP, script: func(t *trial) {
			c := t.client()
			t.every(-1*s, 49*s, 3*s, func() {
				for range 20 {
					c.dial().reset()
				}
			})
		}},
		truthCase{name: "checks: preconnects that send nothing", server: goHTTP, quick: true, quickRemote: true, script: func(t *trial) {
			c := t.client()
			t.every(-5*s, 49*s, 2*s, func() { c.dial() })
		}},
		truthCase{name: "checks: preconnects to nginx", server: nginx, script: func(t *trial) {
			c := t.client()
			t.every(-5*s, 49*s, 2*s, func() { c.dial() })
		}},
		truthCase{name: "checks: connections to a server that speaks first", server: greeter, script: func(t *trial) {
			c := t.client()
			t.at(-5*s, func() { c.dial() })
		}},
		truthCase{name: "checks: TCP each second, until settled", server: raw, flags: until("settled"), quick: true, script: func(t *trial) {
			c := t.client()
			t.every(-5*s, 49*s, s, c.check)
		}},
	)
}

// until returns the usual flags with another condition.
func until(condition string, more ...string) []string {
	return append([]string{"--until=" + condition, "--grace-period=60"}, more...)
}

func listenCases() []truthCase {
	held := 3900 * ms // an unknown silence holds as quiet does
	return []truthCase{
		{name: "ports: one opened at +1, requests there until +9", server: raw, quick: true, notBefore: 12 * s, script: func(t *trial) {
			opener, c := t.client(), t.client()
			t.at(1*s, func() { opener.short("listen 8099") })
			t.steady(1500*ms, 9*s, 5, func() {
				conn := c.dialPort(8099)
				conn.ask("answer 20ms 100")
				conn.stop()
			})
		}},
		{name: "ports: one that is never accepted from, with an entry, floor 20 s", server: raw, flags: until("quiet", "--delay=20"), notBefore: 20 * s, by: 50 * s, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() { c.short("listen 8099 shut") })
			t.at(-1*s, func() { c.dialPort(8099).send("hello") })
		}},
		{name: "listens: on no socket", server: serverless("none"), quick: true, by: 1 * s, script: func(t *trial) {}},
		{name: "listens: on an abstract Unix socket", server: serverless("abstract"), quick: true, notBefore: held, by: 50 * s, script: func(t *trial) {}},
		{name: "listens: on UDP at an ephemeral port", server: serverless("udp"), quick: true, flags: until("quiet", "--max-delay=8"), notBefore: held, by: 9 * s, script: func(t *trial) {}},
		{name: "listens: on a raw socket", server: serverless("icmp"), quick: true, flags: until("quiet", "--max-delay=8"), notBefore: held, by: 9 * s, script: func(t *trial) {}},
		{name: "listens: in another network namespace", server: serverless("elsewhere"), flags: until("quiet", "--max-delay=8"), notBefore: held, by: 9 * s, script: func(t *trial) {}},
	}
}
