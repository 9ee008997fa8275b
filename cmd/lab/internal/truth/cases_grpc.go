package truth

import (
	"slices"
	"time"

	"google.golang.org/grpc"
)

// grpcCases are calls and streams of gRPC.
func grpcCases() []truthCase {
	return slices.Concat(grpcCallCases(), grpcStreamCases(), grpcIdleCases(), grpcLimitCases())
}

// calls plans fast calls, and then a slow one at -1 s, on one connection.
func calls(fast int, takes time.Duration, options ...grpc.DialOption) func(t *trial) {
	return func(t *trial) {
		ch := t.client().channel(options...)
		for i := range fast {
			t.at(-3*s+time.Duration(i)*300*ms, func() { ch.call(5 * ms) })
		}
		t.at(-1*s, func() { ch.call(takes) })
	}
}

func grpcCallCases() []truthCase {
	return append(
		both(
			truthCase{name: "gRPC: a call of 9 s after fast ones", server: grpcServer, quick: true, script: calls(4, 9*s)},
			truthCase{name: "gRPC: over TLS, a call of 9 s after fast ones", server: grpcTLS, script: calls(4, 9*s)},
		),
		truthCase{name: "gRPC: a call of 25 s after fast ones, with keepalive PINGs", server: grpcServer, limit: pings, script: calls(4, 25*s, pinging())},
		far(truthCase{name: "gRPC: a call of 25 s after fast ones, with keepalive PINGs", server: grpcServer, script: calls(4, 25*s, pinging())}),
		truthCase{name: "gRPC: a connection for each call, 5 a second until +4", server: grpcServer, script: func(t *trial) {
			c := t.client()
			t.steady(-2*s, 4*s, 5, func() {
				ch := c.channel()
				ch.call(20 * ms)
				ch.stop()
			})
		}},
		truthCase{name: "gRPC: channels, busy until +5", server: grpcServer, script: grpcPool(5 * s)},
	)
}

func grpcStreamCases() []truthCase {
	stream := func(count int, period time.Duration) func(t *trial) {
		return func(t *trial) {
			ch := t.client().channel()
			t.at(-2*s, func() { ch.stream(count, period) })
		}
	}
	send := func(count int, period time.Duration) func(t *trial) {
		return func(t *trial) {
			ch := t.client().channel()
			t.at(-3*s, func() { ch.call(5 * ms) })
			t.at(-2*s, func() { ch.send(count, period) })
		}
	}
	return append(
		both(
			truthCase{name: "gRPC: a stream, a message each 3 s until +10", server: grpcServer, script: stream(4, 3*s)},
		),
		truthCase{name: "gRPC: a stream, a message each second until +6", server: grpcServer, script: stream(8, s)},
		truthCase{name: "gRPC: a stream, cancelled at +6", server: grpcServer, limit: tied, script: func(t *trial) {
			ch := t.client().channel()
			t.at(-2*s, func() { ch.endless(9, s) })
		}},
		truthCase{name: "gRPC: a client's stream, a message each second until +6", server: grpcServer, limit: tied, script: send(8, s)},
		truthCase{name: "gRPC: a stream, a message each 8 s until +14", server: grpcServer, limit: pauses, script: stream(2, 8*s)},
	)
}

// grpcPool plans channels with calls until a moment.
func grpcPool(to time.Duration, options ...grpc.DialOption) func(t *trial) {
	return func(t *trial) {
		for i, c := range t.crowd(6) {
			ch := c.channel(options...)
			t.every(-3*s+time.Duration(i)*50*ms, to, 500*ms, func() { ch.call(5 * ms) })
		}
	}
}

func grpcIdleCases() []truthCase {
	return append(
		both(
			truthCase{name: "gRPC: channels, idle", server: grpcServer, quick: true, script: grpcPool(-1 * s)},
			truthCase{name: "gRPC: channels, idle, with keepalive PINGs each 10 s", server: grpcServer, slack: 16 * s, script: grpcPool(-1*s, pinging())},
		),
		truthCase{name: "gRPC: channels, idle, the server PINGs each 3 s", server: grpcKeepalive, limit: limit{"HTTP/2's own traffic", late}, script: grpcPool(-1 * s)},
		truthCase{name: "gRPC: over TLS, channels, idle", server: grpcTLS, script: grpcPool(-1 * s)},
		truthCase{name: "gRPC: a kubelet's probe each 2 s", server: grpcServer, slack: patience(2 * s), script: func(t *trial) {
			c := t.client()
			t.every(-5*s, 60*s, 2*s, func() {
				ch := c.channel()
				ch.health()
				ch.stop()
			})
		}},
		truthCase{name: "gRPC: a health check each 2 s on a kept channel", server: grpcServer, limit: keptProbe, slack: patience(2 * s), script: func(t *trial) {
			ch := t.client().channel()
			t.every(-5*s, 60*s, 2*s, ch.health)
		}},
		truthCase{name: "gRPC: TCP checks each second", server: grpcServer, script: func(t *trial) {
			c := t.client()
			t.every(-5*s, 50*s, s, c.check)
		}},
	)
}

// grpcLimitCases are calls invisible to the hold. A graceful server loses no call.
func grpcLimitCases() []truthCase {
	slowBeside := func(t *trial) {
		ch := t.client().channel()
		t.at(-1*s, func() { ch.call(10 * s) })
		t.every(-3*s, 2*s, 300*ms, func() { ch.call(5 * ms) })
	}
	paused := func(t *trial) {
		ch := t.client().channel()
		t.at(-1*s, func() { ch.stream(1, 10*s) })
	}
	var cases []truthCase
	for _, at := range []struct {
		name   string
		limit  limit
		script func(t *trial)
	}{
		{"a first call of 9 s", firstH2, calls(0, 9*s)},
		{"a first call of 25 s with keepalive PINGs", firstH2, calls(0, 25*s, pinging())},
		{"a call of 10 s beside fast ones until +2", beside, slowBeside},
		{"a stream that pauses for 10 s", pauses, paused},
	} {
		cases = append(cases,
			truthCase{name: "gRPC: " + at.name, server: grpcServer, limit: at.limit, script: at.script},
			truthCase{name: "graceful: gRPC, " + at.name, server: grpcGraceful, flags: until("quiet", "--preset=go"), graceful: true, script: at.script},
		)
	}
	return append(cases, truthCase{name: "gRPC: over TLS, a first call of 9 s", server: grpcTLS, limit: firstH2, script: calls(0, 9*s)})
}
