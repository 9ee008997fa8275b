package report

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/cost"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// stopCase is a stop for the golden file: what differs from the stop that newStop returns.
type stopCase struct {
	name   string
	lines  func(s *Stop) []string
	change func(s *Stop)
}

var (
	announced = (*Stop).Announcement
	concluded = (*Stop).Conclusion
	late      = (*Stop).Late
)

var (
	trigger  = time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)
	kubelet  = netip.MustParseAddr("10.0.0.1")
	balancer = netip.MustParseAddr("10.0.0.7")
)

// ninePorts are more than a report lists.
var ninePorts = []uint16{53, 5000, 5001, 5002, 5003, 5004, 5005, 5006, 8125}

// at returns a moment so many seconds after the trigger.
func at(after float64) time.Time {
	return trigger.Add(time.Duration(after * float64(time.Second)))
}

// newStop returns a stop of 25 new connections, with --delay=2 --until=quiet --max-delay=15
// --grace-period=30, that ended quiet after 9.3 s.
func newStop() *Stop {
	s := &Stop{
		Terms: Terms{
			Config: &stop.Config{
				Gate:  stop.Gate{Floor: 2 * time.Second, Ceiling: 15 * time.Second, Until: stop.Quiet},
				Grace: 30 * time.Second,
			},
			TrafficConfig: &traffic.Config{QuietFor: 4 * time.Second, MaxSilence: 30 * time.Second},
			AssumedFrom:   "Kubernetes",
		},
		Record: stop.Record{Trigger: sig.TERM, TriggeredAt: trigger, Steps: stop.Schedule{{Signal: sig.TERM}}},
		InHold: Observation{Observer: "sock_diag", ScopeName: "descriptors", Sample: traffic.Sample{
			Accepted: 25, PerSecond: []int{5, 5, 5, 5, 4, 1, 0, 0, 0}, LastNew: at(5.3), LastOther: at(5.3), LastByte: at(5.3),
			Cause: traffic.Cause{Kind: traffic.NewConnections, Peer: balancer, Port: 8080, At: at(5.3), Connections: 5},
		}},
	}
	s.end(stop.Quiet, 9.3)
	return s
}

// end ends the hold, and the command a tenth of a second later.
func (s *Stop) end(reason stop.Reason, held float64) {
	s.Ended, s.EndedAt = reason, at(held)
	s.ExitedAt, s.Now = at(held+0.1), at(held+0.1)
	s.Exit = stop.Event{Kind: stop.CommandExited}
	s.Sent = []stop.Sent{{Signal: s.Steps.FirstSignal(0), At: at(held)}}
}

// delay makes the hold a plain delay that has passed.
func (s *Stop) delay(length float64) {
	s.Gate = stop.Gate{Floor: at(length).Sub(trigger)}
	s.end(stop.Elapsed, length)
}

// hook makes the stop that of a preStop hook.
func (s *Stop) hook() {
	s.Hook, s.Trigger, s.Steps, s.Sent, s.ExitedAt = true, 0, nil, nil, time.Time{}
}

// run makes the command run at a time.
func (s *Stop) run(now float64) { s.ExitedAt, s.Now = time.Time{}, at(now) }

// seek makes the hold end after a search for a lull.
func (s *Stop) seek(inFlight int) {
	s.Lull = stop.Lull{Sought: true, Found: inFlight == 0, InFlight: inFlight}
}

// traffic makes traffic of a kind hold to the end, without new connections.
func (s *Stop) traffic(kind traffic.CauseKind, port uint16) {
	s.InHold.Sample = traffic.Sample{PerSecond: make([]int, 15), LastByte: at(14.9)}
	s.InHold.Cause = traffic.Cause{Kind: kind, Peer: balancer, Port: port, At: at(14.9), Connections: 3}
	s.end(stop.Ceiling, 15)
}

// connections makes new connections hold to the end, so many in each second.
func (s *Stop) connections(last time.Time, perSecond ...int) {
	s.traffic(traffic.NewConnections, 8080)
	s.InHold.PerSecond, s.InHold.LastNew, s.InHold.LastOther = perSecond, last, last
	for _, n := range perSecond {
		s.InHold.Accepted += n
	}
}

// keep makes clients use connections that they keep.
func (s *Stop) keep() {
	s.traffic(traffic.Bytes, 8080)
	s.InHold.Open = 30
	s.InHold.InUse = 24
}

// probe makes the kubelet's probe the cause, and all that there is.
func (s *Stop) probe() {
	s.traffic(traffic.Probe, 8080)
	t := &s.InHold
	t.Accepted, t.PerSecond, t.LastNew = 15, slices.Repeat([]int{1}, 15), at(14.6)
	t.Cause = traffic.Cause{
		Kind: traffic.Probe, Peer: kubelet, Port: 8080, At: at(14.6), Period: time.Second, Received: 132,
	}
	t.Patterns = []traffic.Pattern{{Peer: kubelet, Port: 8080, Received: 132, Period: time.Second, Count: 15}}
}

var stopCases = []stopCase{
	{"quiet", concluded, func(*Stop) {}},
	{"quiet, and some came back", concluded, func(s *Stop) {
		s.TrafficConfig.CloseIdle = true
		s.InHold.Asked = letgo.Figures{Closed: 24, CameBack: 3}
		s.InHold.LeftOut.Bare, s.InHold.LeftOut.Probes = 7, 6
		s.InHold.Patterns = []traffic.Pattern{{Peer: kubelet, Period: time.Second, Count: 6, LeftOut: true}}
		s.InHold.UDPPorts, s.InHold.LatePorts = ninePorts, ninePorts
		s.Told = sig.USR2
		s.Now = at(10.4) // lameduck stood still: there was no linger
	}},
	{"nothing listens, and nothing came", concluded, func(s *Stop) {
		s.InHold.Sample = traffic.Sample{PerSecond: make([]int, 4), LastNew: at(-2), LastByte: at(-1)}
		s.end(stop.NoListener, 4)
	}},
	{"quiet, a request given up", concluded, func(s *Stop) {
		s.traffic(traffic.Requests, 8080)
		s.InHold.Open, s.InHold.LeftOut.GivenUp = 1, 1
		s.end(stop.Quiet, 15)
	}},
	{"quiet, probes that are ignored", concluded, func(s *Stop) {
		s.probe()
		s.TrafficConfig.Probes = traffic.IgnoreProbes
		s.InHold.Patterns[0].LeftOut = true
		s.InHold.LastNew = time.Time{}
		s.InHold.Cause.At = at(1.3)
		s.end(stop.Quiet, 4)
	}},
	{"quiet, through /proc/net", concluded, func(s *Stop) {
		s.InHold.Observer, s.InHold.InFlightUnknown = "/proc/net", true
		s.InHold.Open, s.InHold.More = 1, true
	}},
	{"quiet, a connection too short to be counted", concluded, func(s *Stop) { s.InHold.Accepted = 0 }},
	{"quiet, a stream beside other connections", concluded, func(s *Stop) {
		s.InHold.Open, s.InHold.InUse, s.InHold.Streams = 4, 2, 1
		s.hook()
	}},
	{"quiet, --on-stop until later", concluded, func(s *Stop) {
		s.OnStopUntil = at(12.8)
		s.end(stop.Quiet, 13)
	}},
	{"quiet, one of several paths until later", concluded, func(s *Stop) {
		s.WaitGone = []string{"/run/app", "/run/other"}
		s.end(stop.Quiet, 13)
	}},
	{"ceiling, a path", concluded, func(s *Stop) {
		s.InHold.PathsPresent = []string{"/run/app"}
		s.end(stop.Ceiling, 15)
	}},
	{"no progress", concluded, func(s *Stop) {
		s.end(stop.NoProgress, 10.2)
		s.InHold.Open, s.InHold.InFlight = 3, 3
		s.Exit.Signal = sig.KILL
	}},
	{"UDP alone", concluded, func(s *Stop) {
		s.InHold = Observation{UDPPorts: []uint16{53}, Unseen: []string{"Unix sockets", "another network namespace"}}
		s.end(stop.UDP, 5)
	}},
	{"blind", concluded, func(s *Stop) {
		s.InHold = Observation{Observer: "none", Blind: true}
		s.end(stop.Unobserved, 15)
	}},

	{"a delay that is too long", concluded, func(s *Stop) { s.delay(15) }},
	{"a delay that cuts requests of clients that keep their connections", concluded, func(s *Stop) {
		s.keep()
		s.delay(5)
		s.seek(3)
	}},
	{"a delay with a server that closes kept connections", concluded, func(s *Stop) {
		s.keep()
		s.delay(9)
		s.seek(1)
		s.Server, s.ClosesKept = "nginx", true
	}},

	{"ceiling, new connections at a steady rate", concluded, func(s *Stop) {
		s.connections(at(14.9), slices.Repeat([]int{40}, 15)...)
		s.InHold.Cause.Connections = 160
		s.InHold.InFlight, s.InHold.Open = 4, 8
	}},
	{"ceiling, new connections of unknown peers at a falling rate", concluded, func(s *Stop) {
		s.connections(at(14.3), 60, 50, 40, 30, 20, 4, 3, 1, 1, 1, 0, 0, 0, 0, 1)
		s.InHold.Cause.Peer, s.InHold.Cause.Connections = netip.Addr{}, 20
	}},
	{"ceiling, a new connection at times", concluded, func(s *Stop) {
		s.connections(at(14.9), slices.Repeat([]int{1}, 15)...)
	}},
	{"ceiling, a HEALTHCHECK over loopback", concluded, func(s *Stop) {
		s.connections(at(12.1), 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0)
		s.InHold.Cause.Peer = netip.IPv6Loopback()
	}},
	{"ceiling, a stream that is never answered", concluded, func(s *Stop) {
		s.traffic(traffic.Bytes, 514)
		s.InHold.Cause.Unanswered = true
		s.InHold.Open, s.InHold.InFlight = 1, 1
	}},
	{"ceiling, requests", concluded, func(s *Stop) {
		s.traffic(traffic.Requests, 8080)
		s.InHold.InFlight = 3
	}},
	{"ceiling, requests, with a longer grace period", concluded, func(s *Stop) {
		s.traffic(traffic.Requests, 8080)
		s.InHold.InFlight = 3
		s.LongerGrace = 34 * time.Second
	}},
	{"ceiling, streams", concluded, func(s *Stop) {
		s.keep()
		s.InHold.Open, s.InHold.InUse, s.InHold.Streams = 4, 4, 4
	}},
	{"ceiling, an accept queue", concluded, func(s *Stop) { s.traffic(traffic.AcceptQueue, 8080) }},
	{"ceiling, open connections", concluded, func(s *Stop) {
		s.traffic(traffic.OpenConnections, 0)
		s.InHold.Open = 2
	}},
	{"ceiling, a probe that counts", concluded, func(s *Stop) { s.probe() }},
	{"clients that keep their connections, at a lull", concluded, func(s *Stop) {
		s.keep()
		s.seek(0)
		s.InHold.InFlight = 2 // in an earlier sample
		s.Server = "envoy"
	}},
	{"clients that keep their connections, some of them closed", concluded, func(s *Stop) {
		s.keep()
		s.TrafficConfig.CloseIdle = true
		s.InHold.Asked.Closed = 2
		s.Linger, s.Now = 3*time.Second, at(16)
	}},

	{"second signal, a shell", concluded, func(s *Stop) {
		s.end(stop.SecondSignal, 1.8)
		s.ShellDropped = sig.TERM
	}},
	{"the command exits at once, in a unit of systemd", concluded, func(s *Stop) {
		s.Systemd = true
		s.end(stop.ChildExit, 0.1)
		s.Sent = nil
	}},
	{"interrupt, a server with a caveat", concluded, func(s *Stop) {
		s.end(stop.Interrupt, 1.8)
		s.InHold.InFlight = 1
		s.Caveat = "nginx needs worker_shutdown_timeout"
		s.Exit.Signal = sig.QUIT
	}},

	{"a schedule without a hold", concluded, func(s *Stop) {
		s.Gate, s.EndedAt = stop.Gate{}, trigger
		s.InHold = Observation{}
		s.Sent = []stop.Sent{{Signal: sig.USR1, At: trigger}, {Signal: sig.KILL, At: at(5)}}
		s.Exit.Signal = sig.KILL
	}},

	{"a schedule begins without a hold", announced, func(s *Stop) {
		s.Gate = stop.Gate{}
		s.KillAfter = 5 * time.Second
		s.GraceCaveat = "the grace period is assumed to be 10 s, as in Docker, which is too short: give the real one"
	}},
	{"a hook begins without a floor", announced, func(s *Stop) {
		s.hook()
		s.Gate.Floor = 0
	}},
	{"a hold begins for others too, in an assumed grace period", announced, func(s *Stop) {
		s.Told = sig.USR2
		s.Gate.OnStop = true
		s.WaitGone = []string{"/run/app", "/run/other\napp"}
		s.GraceAssumed = true
	}},
	{"still holding, in an assumed grace period", late, func(s *Stop) {
		s.keep()
		s.Ended, s.EndedAt, s.Sent = "", time.Time{}, nil
		s.run(9)
		s.GraceAssumed = true
		s.InHold.InFlight = 3
		s.InHold.Cause.At = at(8.9)
		s.Caveat = "not shown: no signal was sent"
		s.Latest = s.InHold
	}},
	{"still running, another program than the preset's", late, func(s *Stop) {
		s.Latest = Observation{Observer: "sock_diag", Sample: traffic.Sample{InFlight: 3}}
		s.Latest.LeftOut.GivenUp = 1
		s.Server, s.OtherProgram = "haproxy", "node"
		s.run(29)
	}},
	{"descendants still run", late, func(s *Stop) { s.Now = at(29) }},
}

// newCost returns what the end of a server cost that died of TERM while its balancer went on.
func newCost() *Cost {
	c := &Cost{Now: at(7.4), Grace: 30 * time.Second}
	c.TERM, c.Limit, c.QuietFor, c.Ceiling = trigger, 29*time.Second, 4*time.Second, 19*time.Second
	c.Ends = []cost.End{{Port: 8080, At: at(0.1), Cut: 3}}
	c.Refused, c.LastRefused, c.PerSecond = 41, at(3.4), []int{15, 13, 10, 3}
	c.LastNew, c.LastByte, c.InUse = at(0.05), at(0.06), 3
	return c
}

// nothingLost makes it a server that a hold of so many seconds kept serving.
func (c *Cost) nothingLost(held float64) {
	c.Ends[0] = cost.End{Port: 8080, At: at(held)}
	c.Refused, c.LastRefused, c.PerSecond, c.InUse = 0, time.Time{}, nil, 0
	c.LastNew, c.LastByte = at(held-4.1), at(held-4)
}

// costCases are for the golden file: what differs from the stop that newCost returns.
var costCases = []struct {
	name   string
	change func(c *Cost)
}{
	{"watch", func(*Cost) {}},
	{"watch, nobody came", func(c *Cost) {
		c.nothingLost(0.1)
		c.Ends[0].Cut = 1
	}},
	{"watch, TERM after the server's end", func(c *Cost) {
		c.TERM = at(2)
		c.OfProbes = 2
	}},
	{"watch, TERM after the end of a hold", func(c *Cost) {
		c.nothingLost(7.4)
		c.TERM = at(8)
	}},
	{"watch, an assumed grace period that is too short", func(c *Cost) {
		c.Ceiling = 5 * time.Second
		c.GraceAssumed = true
	}},
	{"watch, clients that keep their connections", func(c *Cost) {
		c.nothingLost(12)
		c.LastNew, c.LastByte, c.InUse, c.Ends[0].Cut = at(3), at(12), 24, 2
		c.Refused, c.LastRefused, c.PerSecond = 1, at(12.1), []int{1}
	}},
	{"watch, several ports, a stream, and events missed", func(c *Cost) {
		c.Ends = append(c.Ends, cost.End{Port: 9090, At: at(2.5)})
		c.Listening = []uint16{22}
		c.Streams = 1
		c.CutAtLeast = true
	}},
	{"watch, the server serves on", func(c *Cost) {
		c.nothingLost(1)
		c.Ends, c.Listening, c.Now = nil, []uint16{8080}, at(29)
	}},
	{"watch, nothing listens", func(c *Cost) {
		c.nothingLost(1)
		c.Ends = nil
	}},
	{"watch, without sock_diag and counters", func(c *Cost) {
		c.Source = "/proc/net"
		c.Uncounted = errors.New("open /proc/net/snmp: no such file or directory")
	}},
}
