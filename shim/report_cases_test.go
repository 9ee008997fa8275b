package shim

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// endsAt returns the course of a stop: the hold ends for a reason after a time, and the
// command exits at once.
func endsAt(reason stop.Reason, held float64) course {
	return course{ended: reason, held: held, exit: exited, at: held + 0.1}
}

// running returns the course with --on-stop, which runs until a time.
func (c course) running(until float64) course {
	c.onStop = until
	return c
}

// waitingFor returns a configuration with paths to wait for.
func waitingFor(cfg Config, paths ...string) Config {
	cfg.WaitGone = paths
	return cfg
}

// running returns a configuration with a command to wait for.
func running(cfg Config) Config {
	cfg.OnStop = []string{"deregister"}
	return cfg
}

// perhapsIdle returns a cause perhaps without any request.
func perhapsIdle(at float64, connections int) traffic.Cause {
	cause := by(traffic.Requests, balancer, at, connections)
	cause.Undetermined = true
	return cause
}

// seeking returns the course with a search for a lull, which began a time before the hold
// ended and showed a number of requests in flight at last: 0 is a lull.
func (c course) seeking(span float64, inFlight int) course {
	c.lull = stop.Lull{Sought: moment(c.held - span), Found: inFlight == 0, InFlight: inFlight}
	return c
}

// crowded returns the course with too many connections for a search.
func (c course) crowded() course {
	c.lull = stop.Lull{TooMany: true}
	return c
}

// pools is the traffic of clients that keep connections, in a hold of a length.
func pools(held float64, connections, peers int) caseTraffic {
	return caseTraffic{news: perSecond(0, int(held)), lastByte: held, seen: traffic.Summary{
		Open: connections, InFlight: 4, Kept: traffic.Kept{Connections: connections, Peers: peers}, Cause: by(traffic.Bytes, balancer, held, 0)}}
}

// and returns the traffic with new connections, the last of which came at a time.
func (c caseTraffic) and(news []int, last float64) caseTraffic {
	c.news, c.lastNew = news, last
	return c
}

// aMinute returns a configuration for a grace period of a minute.
func aMinute() Config {
	return Config{Until: Quiet, QuietFor: 4 * time.Second, GracePeriod: time.Minute}
}

// otherProbe is a probe left out, from the address of the balancer.
var otherProbe = []traffic.Pattern{{Peer: balancer, Port: 8080, Received: 70, Period: 2 * time.Second, Count: 7, LeftOut: true}}

// causeCases are the causes of a hold that lasted longer than without traffic.
var causeCases = []reportCase{
	{name: "late, a slow request", cfg: until(Quiet), course: endsAt(stop.Quiet, 13.8), caseTraffic: caseTraffic{news: perSecond(0, 14), lastByte: 9.8, seen: traffic.Summary{Open: 1, Cause: by(traffic.Requests, balancer, 9.8, 1)}}},
	{name: "late, several slow requests", cfg: until(Quiet), course: endsAt(stop.Quiet, 13.8), caseTraffic: caseTraffic{news: perSecond(0, 14), lastByte: 9.8, seen: traffic.Summary{Open: 3, Cause: by(traffic.Requests, balancer, 9.8, 3)}}},
	{name: "late, a stream", cfg: until(Quiet), course: endsAt(stop.Quiet, 12), caseTraffic: caseTraffic{news: append([]int{2}, perSecond(0, 11)...), lastNew: 0.4, lastByte: 8, seen: traffic.Summary{Open: 1, Cause: by(traffic.Bytes, balancer, 8, 0)}}},
	{name: "late, but by a second only", cfg: until(Quiet), course: endsAt(stop.Quiet, 5), caseTraffic: caseTraffic{news: perSecond(0, 5), lastByte: 1, seen: traffic.Summary{Open: 1, Cause: by(traffic.Bytes, balancer, 1, 0)}}},
	{name: "late, a probe that went away", cfg: with(until(Quiet), func(c *Config) { c.Probes = CountProbes }), course: endsAt(stop.Quiet, 12.6), caseTraffic: caseTraffic{news: append(perSecond(1, 9), 0, 0, 0, 0), lastNew: 8.6, lastByte: 8.6, other: -1, seen: traffic.Summary{Patterns: probing, Cause: byProbe(8.6)}}},
	{name: "late, perhaps idle", cfg: until(Quiet), course: endsAt(stop.Quiet, 8.1), caseTraffic: caseTraffic{news: perSecond(0, 8), seen: traffic.Summary{Open: 20, Cause: perhapsIdle(8, 3), LeftOut: traffic.LeftOut{Undetermined: 3}}}},
	{name: "late, given up", cfg: with(until(Quiet), func(c *Config) { c.MaxSilence = 10 * time.Second }), course: endsAt(stop.Quiet, 10), caseTraffic: caseTraffic{news: []int{1, 2, 0, 1, 0, 1}, lastNew: 5.5, lastByte: 5.6, seen: traffic.Summary{Open: 2, Cause: by(traffic.Requests, balancer, 10, 1), LeftOut: traffic.LeftOut{GivenUp: 1, GivenUpPeer: balancer}}}},
	{name: "late, open connections", cfg: until(Drained), course: endsAt(stop.Drained, 12.2), caseTraffic: caseTraffic{news: perSecond(0, 12), lastByte: 1.5, seen: traffic.Summary{Cause: by(traffic.OpenConnections, balancer, 12, 4)}}},
	{name: "late, a path", cfg: waitingFor(until(Quiet), "/run/app"), course: endsAt(stop.Quiet, 11), caseTraffic: caseTraffic{news: perSecond(0, 11), lastByte: 1.5, seen: traffic.Summary{Cause: by(traffic.Bytes, balancer, 1.5, 0)}}},
	{name: "late, --on-stop without traffic", cfg: running(delayed(2)), course: endsAt(stop.Elapsed, 8).running(8), caseTraffic: caseTraffic{observer: noPorts}},
	{name: "late, --on-stop rather than a path", cfg: running(waitingFor(until(Quiet), "/run/app")), course: endsAt(stop.Quiet, 11).running(10.8), caseTraffic: caseTraffic{news: perSecond(0, 11)}},
	{name: "late, a path rather than --on-stop", cfg: running(waitingFor(until(Quiet), "/run/app")), course: endsAt(stop.Quiet, 11).running(2), caseTraffic: caseTraffic{news: perSecond(0, 11)}},
	{name: "late, a path, but the traffic lasted as long", cfg: waitingFor(until(Quiet), "/run/app"), course: endsAt(stop.Quiet, 13.8), caseTraffic: caseTraffic{news: perSecond(0, 14), lastByte: 9.8, seen: traffic.Summary{Cause: by(traffic.Requests, balancer, 9.8, 1)}}},

	{name: "ceiling, several requests", cfg: until(Quiet), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{news: perSecond(0, 15), lastByte: 3, seen: traffic.Summary{Open: 9, InFlight: 3, Cause: by(traffic.Requests, balancer, 15, 5)}}},
	{name: "ceiling, a request that ended just before", cfg: until(Quiet), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{news: perSecond(0, 15), lastByte: 13.2, seen: traffic.Summary{Open: 1, Cause: by(traffic.Requests, balancer, 13.2, 1)}}},
	{name: "ceiling, an accept queue", cfg: until(Drained), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{news: perSecond(0, 15), seen: traffic.Summary{Open: 3, Cause: by(traffic.AcceptQueue, balancer, 15, 3)}}},
	{name: "ceiling, connections too short to be counted", cfg: until(Settled), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{observer: observe.ProcNet, news: perSecond(0, 15), lastNew: 14.5, lastByte: 14.5, seen: traffic.Summary{Cause: by(traffic.NewConnections, netip.Addr{}, 14.5, 0)}}},
	{name: "ceiling, bytes through /proc/net", cfg: until(Quiet), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{observer: observe.ProcNet, news: perSecond(0, 15), lastByte: 14.5, seen: traffic.Summary{Open: 8, Cause: by(traffic.Bytes, netip.Addr{}, 14.5, 0)}}},
	{name: "ceiling, a path", cfg: waitingFor(until(Quiet), "/run/app", "/run/b"), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{paths: []string{"/run/app"}, news: perSecond(40, 15), lastNew: 14.9, lastByte: 14.9, seen: traffic.Summary{Cause: by(traffic.NewConnections, balancer, 14.9, 160)}}},
	{name: "ceiling, a long path", cfg: waitingFor(until(Quiet), "/run/app"), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{observer: noPorts, paths: []string{"/run/" + strings.Repeat("neighbor/", 12) + "app"}}},
	{name: "ceiling, requests of a long peer", cfg: until(Quiet), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{news: perSecond(0, 15), lastByte: 14.9, seen: traffic.Summary{Open: 30, InFlight: 30, Cause: by(traffic.Requests, netip.MustParseAddr("2001:db8:1234:5678:9abc:def0:1234:5678"), 14.9, 30)}}},
	{name: "ceiling, two paths without traffic", cfg: waitingFor(delayed(2), "/run/app", "/run/b"), course: endsAt(stop.Ceiling, 19), caseTraffic: caseTraffic{observer: noPorts, paths: []string{"/run/app", "/run/b"}}},
	{name: "ceiling, --on-stop", cfg: running(until(Quiet)), course: endsAt(stop.Ceiling, 15).running(15), caseTraffic: caseTraffic{news: perSecond(0, 15), lastByte: 3, seen: traffic.Summary{Cause: by(traffic.Bytes, balancer, 3, 0)}}},
	{name: "second signal, a slow request", cfg: until(Quiet), course: endsAt(stop.SecondSignal, 12), caseTraffic: caseTraffic{news: perSecond(0, 12), lastByte: 1, seen: traffic.Summary{Open: 1, InFlight: 1, Cause: by(traffic.Requests, balancer, 12, 1)}}},
	{name: "holding yet, a slow request", cfg: Config{Until: Quiet, Delay: 2 * time.Second, DelayGiven: true, QuietFor: 2 * time.Second, MaxDelay: 15 * time.Second}, now: 9, caseTraffic: caseTraffic{seen: traffic.Summary{Open: 1, InFlight: 1, Cause: by(traffic.Requests, balancer, 9, 1)}}},
	{name: "no progress, requests wait", cfg: until(Quiet), course: endsAt(stop.NoProgress, 10.2), caseTraffic: caseTraffic{news: perSecond(10, 10), lastNew: 10.1, lastByte: 10.1, seen: traffic.Summary{Open: 100, InFlight: 100, Cause: by(traffic.AcceptQueue, netip.Addr{}, 10.2, 40)}}},
}

// leftOutCases have traffic that does not count.
var leftOutCases = []reportCase{
	{name: "every default", cfg: Config{Until: Quiet, GracePeriod: 30 * time.Second}, course: endsAt(stop.Quiet, 9.3), caseTraffic: caseTraffic{news: []int{5, 5, 5, 5, 4, 1, 0, 0, 0, 0}, lastNew: 5.3, lastByte: 5.3}},
	{name: "all connections without a byte", cfg: until(Quiet), course: endsAt(stop.Quiet, 4), caseTraffic: caseTraffic{news: []int{1, 0, 1, 1}, seen: traffic.Summary{LeftOut: traffic.LeftOut{Bare: 3}}}},
	{name: "the only connection without a byte", cfg: until(Quiet), course: endsAt(stop.Quiet, 4), caseTraffic: caseTraffic{news: []int{1, 0, 0, 0}, seen: traffic.Summary{Open: 1, LeftOut: traffic.LeftOut{Bare: 1}}}},
	{name: "some connections without a byte", cfg: until(Quiet), course: endsAt(stop.Quiet, 9.3), caseTraffic: caseTraffic{news: []int{5, 5, 5, 5, 4, 1, 0, 1, 0, 1}, lastNew: 5.3, lastByte: 5.3, seen: traffic.Summary{LeftOut: traffic.LeftOut{Bare: 7}}}},
	{name: "connections without a byte at a steady rate", cfg: until(Quiet), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{news: perSecond(2, 15), lastNew: 14.5, lastByte: 14.5, seen: traffic.Summary{LeftOut: traffic.LeftOut{Bare: 24}, Cause: by(traffic.NewConnections, balancer, 14.5, 1)}}},
	{name: "probes left out, and nothing else", cfg: until(Quiet), course: endsAt(stop.Quiet, 6), caseTraffic: caseTraffic{news: perSecond(1, 6), seen: traffic.Summary{Patterns: probesOut}}},
	{name: "a probe that held until it was left out", cfg: until(Quiet), course: endsAt(stop.Quiet, 9), caseTraffic: caseTraffic{news: perSecond(1, 9), lastNew: 2.5, lastByte: 2.5, seen: traffic.Summary{Patterns: probesOut, Cause: byProbe(8.6)}}},
	{name: "several probes left out", cfg: until(Quiet), course: endsAt(stop.Quiet, 9), caseTraffic: caseTraffic{news: perSecond(3, 9), lastNew: 3, lastByte: 3, seen: traffic.Summary{Patterns: slices.Concat(probesOut, probesOut, probesOut)}}},
	{name: "a probe left out, and another that counts", cfg: until(Quiet), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{news: perSecond(2, 15), lastNew: 14.7, lastByte: 14.7, other: 3, seen: traffic.Summary{Patterns: slices.Concat(probing, otherProbe), Cause: byProbe(14.7)}}},
	{name: "one-way connections and gone peers", cfg: until(Quiet), course: endsAt(stop.Quiet, 5), caseTraffic: caseTraffic{news: perSecond(0, 5), lastByte: 1, seen: traffic.Summary{Open: 4, LeftOut: traffic.LeftOut{OneWay: 2, Gone: 1}}}},
	{name: "one-way connections that stay open", cfg: until(Drained), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{news: perSecond(0, 15), seen: traffic.Summary{Open: 2, LeftOut: traffic.LeftOut{OneWay: 2}, Cause: by(traffic.OpenConnections, balancer, 15, 2)}}},
	{name: "a flood", cfg: until(Quiet), course: endsAt(stop.Quiet, 4), caseTraffic: caseTraffic{news: perSecond(0, 4), seen: traffic.Summary{LeftOut: traffic.LeftOut{HalfOpen: 4096}}}},
	{name: "half-open connections of a busy server", cfg: until(Quiet), course: endsAt(stop.Quiet, 8), caseTraffic: caseTraffic{news: []int{4000, 4000, 4000, 2000, 0, 0, 0, 0}, lastNew: 3.5, lastByte: 3.6, seen: traffic.Summary{LeftOut: traffic.LeftOut{HalfOpen: 160}}}},
	{name: "a half-open connection", cfg: until(Quiet), course: endsAt(stop.Quiet, 4), caseTraffic: caseTraffic{news: perSecond(0, 4), seen: traffic.Summary{LeftOut: traffic.LeftOut{HalfOpen: 1}}}},
	{name: "unclear connections", cfg: until(Quiet), course: endsAt(stop.Quiet, 5), caseTraffic: caseTraffic{news: perSecond(0, 5), lastByte: 1, seen: traffic.Summary{Open: 50, LeftOut: traffic.LeftOut{Undetermined: 3}}}},
	{name: "a delay, and unclear connections", cfg: delayed(10), course: endsAt(stop.Elapsed, 10), caseTraffic: caseTraffic{news: perSecond(0, 10), lastByte: 1, seen: traffic.Summary{Open: 50, InFlight: 1, LeftOut: traffic.LeftOut{GivenUp: 1, Undetermined: 2, OneWay: 1, HalfOpen: 999}}}},
	{name: "several requests given up", cfg: with(until(Quiet), func(c *Config) { c.MaxSilence = 7500 * time.Millisecond }), course: endsAt(stop.Quiet, 9), caseTraffic: caseTraffic{news: perSecond(0, 9), lastByte: 1.5, seen: traffic.Summary{Open: 3, LeftOut: traffic.LeftOut{GivenUp: 2, Undetermined: 1, GivenUpPeer: balancer}}}},
	{name: "a port opened during the hold", cfg: until(Quiet), course: endsAt(stop.Quiet, 5), caseTraffic: caseTraffic{news: []int{0, 1, 0, 0, 0}, lastNew: 1, lastByte: 1, ports: []uint16{8081}}},
	{name: "a long delay, and requests in flight", cfg: delayed(15), course: endsAt(stop.Elapsed, 15), caseTraffic: caseTraffic{news: []int{8, 9, 8, 7, 9, 8, 4, 1}, lastNew: 7.3, lastByte: 14.9, seen: traffic.Summary{Open: 4, InFlight: 2}}},
}

// tenthSecond are the new connections of a probe every 10 s.
var tenthSecond = []int{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// lullCases have clients that never let go, or a search for a lull.
var lullCases = []reportCase{
	{name: "kept, nginx", cfg: aMinute(), server: "nginx", closesKept: true, course: endsAt(stop.Kept, 20.4).seeking(0.3, 0), caseTraffic: pools(20.4, 24, 3)},
	{name: "kept, an unknown server", cfg: aMinute(), course: endsAt(stop.Kept, 20.4).seeking(0.3, 0), caseTraffic: pools(20.4, 24, 3)},
	{name: "kept, a server that closes nothing", cfg: aMinute(), server: "envoy", course: endsAt(stop.Kept, 21).seeking(1, 3), caseTraffic: pools(21, 24, 3)},
	{name: "kept, one client", cfg: aMinute(), course: endsAt(stop.Kept, 20.2).seeking(0.1, 0), caseTraffic: pools(20.2, 1, 1)},
	{name: "kept, too many connections", cfg: aMinute(), server: "nginx", closesKept: true, course: endsAt(stop.Kept, 20.1).crowded(), caseTraffic: pools(20.1, 30_000, 12)},
	{name: "kept, and a path", cfg: waitingFor(aMinute(), "/run/app"), course: endsAt(stop.Kept, 30).seeking(0.4, 0), caseTraffic: pools(30, 24, 3)},

	{name: "ceiling, clients that keep their connections", cfg: until(Quiet), course: endsAt(stop.Ceiling, 14.6).seeking(0.6, 0), caseTraffic: pools(14.6, 24, 3).and(tenthSecond, 5.5)},
	{name: "ceiling, a pool of nginx", cfg: until(Quiet), server: "nginx", closesKept: true, course: endsAt(stop.Ceiling, 15).seeking(1, 2), caseTraffic: pools(15, 8, 1)},
	{name: "ceiling, a pool and a known server", cfg: until(Quiet), server: "envoy", course: endsAt(stop.Ceiling, 15).seeking(1, 2), caseTraffic: pools(15, 8, 1)},
	{name: "ceiling, pools, but a path was there", cfg: waitingFor(until(Quiet), "/run/app"), course: endsAt(stop.Ceiling, 15).seeking(1, 2), caseTraffic: caseTraffic{paths: []string{"/run/app"}, lastByte: 14.9, seen: pools(15, 8, 1).seen}},
	{name: "ceiling, until drained, pools", cfg: until(Drained), course: endsAt(stop.Ceiling, 14.5).seeking(0.5, 0), caseTraffic: pools(14.5, 8, 2)},
	{name: "ceiling, new connections, at a lull", cfg: until(Quiet), course: endsAt(stop.Ceiling, 14.2).seeking(0.2, 0), caseTraffic: caseTraffic{news: perSecond(40, 15), lastNew: 14.1, lastByte: 14.1, seen: traffic.Summary{Open: 1, Kept: traffic.Kept{Connections: 1, Peers: 1}, Cause: by(traffic.NewConnections, balancer, 14.1, 160)}}},
	{name: "ceiling, the silence a moment too short", cfg: until(Quiet), course: endsAt(stop.Ceiling, 15), caseTraffic: caseTraffic{news: append(perSecond(1, 11), 0, 0, 0, 0), lastNew: 10.9, lastByte: 10.9, seen: traffic.Summary{Cause: by(traffic.NewConnections, balancer, 10.9, 1)}}},

	{name: "a delay, at a lull", cfg: delayed(5), course: endsAt(stop.Elapsed, 5.1).seeking(0.1, 0), caseTraffic: pools(5.1, 24, 3)},
	{name: "a delay, no lull", cfg: delayed(5), course: endsAt(stop.Elapsed, 5.5).seeking(0.5, 3), caseTraffic: pools(5.5, 24, 3)},
	{name: "a delay, no lull, one client", cfg: delayed(5), course: endsAt(stop.Elapsed, 5.5).seeking(0.5, 1), caseTraffic: pools(5.5, 1, 1)},
	{name: "a delay, no lull, and new connections", cfg: delayed(5), course: endsAt(stop.Elapsed, 5.5).seeking(0.5, 3), caseTraffic: pools(5.5, 24, 3).and(perSecond(9, 6), 5.4)},
	{name: "a long delay, no lull, a server that closes", cfg: delayed(15), server: "nginx", closesKept: true, course: endsAt(stop.Elapsed, 15.5).seeking(0.5, 2), caseTraffic: pools(15.5, 24, 3).and([]int{7, 5, 1}, 2.1)},
	{name: "a short delay, no lull, a server that closes", cfg: delayed(5), server: "nginx", closesKept: true, course: endsAt(stop.Elapsed, 5.5).seeking(0.5, 2), caseTraffic: pools(5.5, 24, 3)},
	{name: "a delay, at a lull, and a request given up", cfg: Config{Delay: 40 * time.Second, GracePeriod: time.Minute}, course: endsAt(stop.Elapsed, 40.2).seeking(0.2, 0), caseTraffic: caseTraffic{news: perSecond(0, 40), lastByte: 1, seen: traffic.Summary{Open: 2, LeftOut: traffic.LeftOut{GivenUp: 1, GivenUpPeer: balancer}}}},

	{name: "settled, at a lull", cfg: until(Settled), course: endsAt(stop.Settled, 6.2).seeking(0.2, 0), caseTraffic: caseTraffic{news: []int{5, 2, 1, 0, 0, 0}, lastNew: 2, lastByte: 6.2, seen: traffic.Summary{Open: 24, Kept: traffic.Kept{Connections: 24, Peers: 3}, Cause: by(traffic.NewConnections, balancer, 2, 1)}}},
	{name: "settled, no lull", cfg: until(Settled), server: "nginx", closesKept: true, course: endsAt(stop.Settled, 6.5).seeking(0.5, 2), caseTraffic: caseTraffic{news: []int{5, 2, 1, 0, 0, 0}, lastNew: 2, lastByte: 6.5, seen: traffic.Summary{Open: 24, Kept: traffic.Kept{Connections: 24, Peers: 3}, Cause: by(traffic.NewConnections, balancer, 2, 1)}}},
	{name: "a second signal during the search", cfg: until(Quiet), course: endsAt(stop.SecondSignal, 14.6).seeking(0.6, 3), caseTraffic: pools(14.6, 24, 3)},
	{name: "a hook, at a lull", cfg: until(Quiet), hook: true, course: course{ended: stop.Ceiling, held: 14.4}.seeking(0.4, 0), caseTraffic: pools(14.4, 24, 3)},
	{name: "a hook, no lull", cfg: until(Quiet), hook: true, course: course{ended: stop.Ceiling, held: 15}.seeking(1, 2), caseTraffic: pools(15, 24, 3)},
	{name: "at a lull, killed later", cfg: with(until(Quiet), func(c *Config) { c.KillAfter = 9 * time.Second }), now: 29, course: course{ended: stop.Ceiling, held: 14.4}.seeking(0.4, 0), caseTraffic: pools(14.4, 24, 3)},

	{name: "late, a probe in the silence", cfg: until(Quiet), course: endsAt(stop.Quiet, 10.6), caseTraffic: caseTraffic{news: []int{20, 19, 21, 1, 0, 0, 1, 0, 0, 0, 0}, lastNew: 6.6, lastByte: 6.6, seen: traffic.Summary{Cause: by(traffic.NewConnections, kubelet, 6.6, 1)}}},
	{name: "several probes, one of which held until recognized", cfg: until(Quiet), course: endsAt(stop.Quiet, 11.3), caseTraffic: caseTraffic{news: perSecond(2, 11), lastNew: 2.5, lastByte: 2.5, seen: traffic.Summary{Patterns: slices.Concat(otherProbe, probesOut, otherProbe), Cause: byProbe(8.6)}}},
}
