package shim

import (
	"net/netip"
	"slices"
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
