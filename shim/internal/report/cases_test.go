package report

import (
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// stopCase is a stop for the golden file: what differs from the stop that newStop returns.
type stopCase struct {
	name   string
	lines  func(s *Stop) []string
	json   bool // with the figures
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

// hold makes the hold last at a time.
func (s *Stop) hold(now float64) {
	s.Ended, s.EndedAt, s.Sent = "", time.Time{}, nil
	s.run(now)
}

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

// unseen removes all that a source showed.
func (s *Stop) unseen() {
	s.InHold = Observation{}
	s.end(stop.Elapsed, 5)
}

var stopCases = []stopCase{
	{"a hold without a floor begins", announced, false, func(s *Stop) { s.Gate.Floor = 0 }},
	{"a hold begins for others too, in an assumed grace period", announced, false, func(s *Stop) {
		s.Gate.WaitGone, s.Gate.OnStop = true, true
		s.WaitGone = []string{"/run/app", "/run/other app"}
		s.GraceAssumed = true
	}},
	{"a hold begins with a signal", announced, false, func(s *Stop) { s.Told = sig.USR2 }},
	{"a hold began with a signal", concluded, false, func(s *Stop) { s.Told = sig.USR2 }},
	{"a hold begins that may be too long", announced, false, func(s *Stop) {
		s.GraceCaveat = "the grace period is assumed to be 10 s, as in Docker, which is too short: " +
			"give the real one with --grace-period (LAMEDUCK_GRACE_PERIOD)"
		s.GraceAssumed = true
	}},
	{"a schedule begins without a hold", announced, false, func(s *Stop) {
		s.Gate = stop.Gate{}
		s.Steps = stop.Schedule{{Signal: sig.USR1}, {Wait: 30 * time.Second}, {Signal: sig.TERM}}
		s.KillAfter = 5 * time.Second
	}},
	{"a hook begins", announced, false, func(s *Stop) { s.hook() }},

	{"quiet", concluded, true, func(*Stop) {}},
	{"quiet, and some came back", concluded, true, func(s *Stop) {
		s.TrafficConfig.CloseIdle = true
		s.InHold.Asked = letgo.Figures{Closed: 24, CameBack: 3}
	}},
	{"quiet, ended by the signal", concluded, true, func(s *Stop) { s.Exit.Signal = sig.TERM }},
	{"quiet, nothing came", concluded, true, func(s *Stop) {
		s.InHold.Sample = traffic.Sample{PerSecond: make([]int, 4)}
		s.end(stop.Quiet, 4)
	}},
	{"quiet, a request given up", concluded, true, func(s *Stop) {
		s.traffic(traffic.Requests, 8080)
		s.InHold.Open, s.InHold.LeftOut.GivenUp = 1, 1
		s.end(stop.Quiet, 15)
	}},
	{"quiet, some connections not counted", concluded, true, func(s *Stop) {
		s.InHold.LeftOut.Bare, s.InHold.LeftOut.Probes = 7, 6
		s.InHold.Patterns = []traffic.Pattern{{Peer: kubelet, Period: time.Second, Count: 6, LeftOut: true}}
	}},
	{"quiet, probes that are ignored", concluded, false, func(s *Stop) {
		s.probe()
		s.TrafficConfig.Probes = traffic.IgnoreProbes
		s.InHold.Patterns[0].LeftOut = true
		s.InHold.LastNew = time.Time{}
		s.InHold.Cause.At = at(1.3)
		s.end(stop.Quiet, 4)
	}},
	{"quiet, through /proc/net", concluded, true, func(s *Stop) {
		s.InHold.Observer, s.InHold.InFlightUnknown = "/proc/net", true
		s.InHold.Open, s.InHold.More = 1, true
		s.InHold.LatePorts = ninePorts
	}},
	{"quiet, a connection too short to be counted", concluded, false, func(s *Stop) { s.InHold.Accepted = 0 }},
	{"second signal", concluded, false, func(s *Stop) {
		s.end(stop.SecondSignal, 1.8)
		s.Exit.Signal = sig.QUIT
	}},
	{"interrupt", concluded, false, func(s *Stop) { s.end(stop.Interrupt, 1.8) }},
	{"no progress", concluded, true, func(s *Stop) {
		s.end(stop.NoProgress, 10.2)
		s.InHold.Open, s.InHold.InFlight = 3, 3
		s.Exit.Signal = sig.KILL
	}},
	{"UDP alone", concluded, true, func(s *Stop) {
		s.unseen()
		s.InHold.UDPPorts = []uint16{53}
		s.end(stop.UDP, 5)
	}},
	{"UDP beside TCP", concluded, false, func(s *Stop) { s.InHold.UDPPorts = ninePorts }},
	{"sockets that cannot be seen", concluded, false, func(s *Stop) {
		s.unseen()
		s.InHold.Unseen = []string{"Unix sockets", "another network namespace"}
	}},
	{"blind", concluded, true, func(s *Stop) {
		s.unseen()
		s.InHold.Observer, s.InHold.Blind = "none", true
		s.end(stop.Unobserved, 15)
	}},
	{"a schedule without a hold", concluded, false, func(s *Stop) {
		s.unseen()
		s.Gate, s.Ended, s.EndedAt = stop.Gate{}, "", trigger
		s.Sent = []stop.Sent{{Signal: sig.USR1, At: trigger}, {Signal: sig.TERM, At: at(3)}, {Signal: sig.KILL, At: at(5)}}
		s.Exit.Signal = sig.KILL
	}},
	{"descendants linger", concluded, false, func(s *Stop) {
		s.Linger = 3 * time.Second
		s.Now = at(11)
	}},

	{"a delay that is too long", concluded, true, func(s *Stop) { s.delay(15) }},
	{"a delay that cuts requests of clients that keep their connections", concluded, false, func(s *Stop) {
		s.keep()
		s.delay(5)
		s.seek(3)
	}},

	{"ceiling, new connections at a steady rate", concluded, true, func(s *Stop) {
		s.traffic(traffic.NewConnections, 8080)
		t := &s.InHold
		t.Accepted, t.PerSecond, t.LastNew, t.LastOther = 600, slices.Repeat([]int{40}, 15), at(14.9), at(14.9)
		t.Cause.Connections = 160
		t.InFlight, t.Open = 4, 8
	}},
	{"ceiling, new connections of unknown peers at a falling rate", concluded, false, func(s *Stop) {
		s.traffic(traffic.NewConnections, 8080)
		t := &s.InHold
		t.Accepted, t.PerSecond = 210, []int{60, 50, 40, 30, 20, 4, 3, 1, 1, 1, 0, 0, 0, 0, 1}
		t.LastNew, t.LastOther = at(14.3), at(14.3)
		t.Cause.Peer, t.Cause.Connections = netip.Addr{}, 20
	}},
	{"ceiling, a new connection at times", concluded, false, func(s *Stop) {
		s.traffic(traffic.NewConnections, 8080)
		s.InHold.Accepted, s.InHold.PerSecond = 15, slices.Repeat([]int{1}, 15)
		s.InHold.LastNew, s.InHold.LastOther = at(14.9), at(14.9)
	}},
	{"ceiling, a HEALTHCHECK over loopback", concluded, false, func(s *Stop) {
		s.traffic(traffic.NewConnections, 8080)
		s.InHold.Cause.Peer, s.InHold.Cause.Connections = netip.MustParseAddr("::1"), 2
		s.InHold.Accepted, s.InHold.PerSecond = 5, []int{1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0}
		s.InHold.LastNew, s.InHold.LastOther = at(12.1), at(12.1)
	}},
	{"ceiling, a stream that is never answered", concluded, true, func(s *Stop) {
		s.traffic(traffic.Bytes, 514)
		s.InHold.Cause.Unanswered = true
		s.InHold.Open, s.InHold.InFlight = 1, 1
	}},
	{"ceiling, requests", concluded, false, func(s *Stop) {
		s.traffic(traffic.Requests, 8080)
		s.InHold.Open, s.InHold.InFlight = 3, 3
	}},
	{"ceiling, requests, with a longer grace period", concluded, false, func(s *Stop) {
		s.traffic(traffic.Requests, 8080)
		s.InHold.Open, s.InHold.InFlight = 3, 3
		s.LongerGrace = 34 * time.Second
	}},
	{"ceiling, streams", concluded, true, func(s *Stop) {
		s.keep()
		s.InHold.Open, s.InHold.InUse, s.InHold.Streams = 4, 4, 4
	}},
	{"quiet, a stream beside other connections", concluded, false, func(s *Stop) {
		s.InHold.Open, s.InHold.InUse, s.InHold.Streams = 4, 2, 1
		s.hook()
	}},
	{"the command exits at once, in a unit of systemd", concluded, false, func(s *Stop) {
		s.Systemd = true
		s.end(stop.ChildExit, 0.1)
		s.Sent = nil
	}},
	{"ceiling, an accept queue", concluded, false, func(s *Stop) { s.traffic(traffic.AcceptQueue, 8080) }},
	{"ceiling, open connections", concluded, false, func(s *Stop) {
		s.traffic(traffic.OpenConnections, 0)
		s.Gate.Until = stop.Drained
		s.InHold.Open = 2
	}},
	{"ceiling, a probe that counts", concluded, true, func(s *Stop) { s.probe() }},
	{"ceiling, a path", concluded, false, func(s *Stop) {
		s.Gate.WaitGone = true
		s.WaitGone = []string{"/run/app", "/run/other"}
		s.InHold.PathsPresent = []string{"/run/app"}
		s.end(stop.Ceiling, 15)
	}},
	{"quiet, a path until later", concluded, false, func(s *Stop) {
		s.Gate.WaitGone = true
		s.WaitGone = []string{"/run/app", "/run/other"}
		s.end(stop.Quiet, 13)
	}},
	{"elapsed, a path until later", concluded, false, func(s *Stop) {
		s.delay(5)
		s.Gate.Floor, s.Gate.WaitGone = 0, true
		s.WaitGone = []string{"/run/app"}
	}},
	{"quiet, --on-stop until later", concluded, false, func(s *Stop) {
		s.Gate.OnStop = true
		s.OnStopUntil = at(12.8)
		s.end(stop.Quiet, 13)
	}},

	{"clients that keep their connections, at a lull", concluded, true, func(s *Stop) {
		s.keep()
		s.seek(0)
		s.InHold.InFlight = 2 // in an earlier sample
		s.Server = "envoy"
	}},
	{"clients that keep their connections, some of them closed", concluded, false, func(s *Stop) {
		s.keep()
		s.TrafficConfig.CloseIdle = true
		s.InHold.Asked.Closed = 2
	}},
	{"a delay with a server that closes kept connections", concluded, false, func(s *Stop) {
		s.keep()
		s.delay(9)
		s.seek(1)
		s.Server, s.ClosesKept = "nginx", true
	}},

	{"still holding, in an assumed grace period", late, false, func(s *Stop) {
		s.keep()
		s.hold(9)
		s.GraceAssumed = true
		s.InHold.InFlight = 3
		s.InHold.Cause.At = at(8.9)
		s.Caveat = "not shown: no signal was sent"
		s.Latest = s.InHold
	}},
	{"still running", late, true, func(s *Stop) {
		s.Latest = Observation{Observer: "sock_diag", Sample: traffic.Sample{InFlight: 3}}
		s.Latest.LeftOut.GivenUp = 1
		s.run(29)
	}},
	{"descendants still run", late, false, func(s *Stop) { s.Now = at(29) }},
	{"another program than the preset's, killed later", late, false, func(s *Stop) {
		s.Server, s.OtherProgram = "haproxy", "node"
		s.Sent[0].Signal = sig.USR1
		s.run(29)
	}},
	{"a shell", concluded, false, func(s *Stop) {
		s.ShellDropped = sig.TERM
		s.Exit.Signal = sig.KILL
	}},
}
