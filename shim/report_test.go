package shim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// reportCase is a stop for the tests of the report: the configuration and the course of
// the stop. Times are seconds since the trigger.
type reportCase struct {
	name string
	cfg  Config
	hook bool
	now  float64 // 0: the time of the exit, or of the end of the hold

	server     string // the preset's name
	closesKept bool   // the server closes kept connections at its signal
	course
	caseTraffic
}

// course is what happened to the command.
type course struct {
	ended stop.Reason
	held  float64
	exit  stop.Event
	at    float64 // the time of the exit; 0: still running
	deaf  bool    // the command is a shell that drops TERM

	onStop float64   // the time until --on-stop ran; 0: no such command
	lull   stop.Lull // the zero value: no search
}

// caseTraffic is what the samples showed.
type caseTraffic struct {
	observer string // "": sock_diag; noPorts: no port counts
	udp      []uint16
	seen     traffic.Summary
	news     []int   // new connections in each second
	lastNew  float64 // 0: none
	lastByte float64
	other    float64  // the last new connection that was no probe's; 0: lastNew
	late     int      // requests in flight at the last sample after the hold; 0: no sample
	ports    []uint16 // opened during the hold
	unix     []string // paths on which the container listens
	unseen   []string // where else
	paths    []string // of --wait-gone, present at the end
}

const noPorts = "no ports"

var (
	trigger   = time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)
	kubelet   = netip.MustParseAddr("10.0.0.1")
	balancer  = netip.MustParseAddr("10.0.0.7")
	probing   = []traffic.Pattern{{Peer: kubelet, Port: 80, Received: 132, Period: time.Second, Count: 15}}
	probesOut = []traffic.Pattern{{Peer: kubelet, Port: 80, Received: 132, Period: time.Second, Count: 6, LeftOut: true}}
	exited    = stop.Event{Kind: stop.CommandExited}
	termed    = stop.Event{Kind: stop.CommandExited, Signal: sig.TERM}
)

// until returns a configuration that holds 2 s to 15 s, and for a silence of 4 s.
func until(c Condition) Config {
	return Config{Until: c, Delay: 2 * time.Second, DelayGiven: true, QuietFor: 4 * time.Second, MaxDelay: 15 * time.Second, GracePeriod: 30 * time.Second}
}

// by returns a cause that lasted until a time, with a number of connections.
func by(kind traffic.CauseKind, peer netip.Addr, at float64, connections int) traffic.Cause {
	return traffic.Cause{Kind: kind, Peer: peer, Port: 8080, At: moment(at), Connections: connections}
}

// byProbe returns the kubelet's probe as a cause that lasted until a time.
func byProbe(at float64) traffic.Cause {
	return traffic.Cause{Kind: traffic.Probe, Peer: kubelet, Port: 8080, At: moment(at), Period: time.Second, Received: 132}
}

func delayed(seconds float64) Config {
	return Config{Delay: after(seconds), GracePeriod: 30 * time.Second}
}

func with(cfg Config, change func(c *Config)) Config {
	change(&cfg)
	return cfg
}

func after(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// moment returns a time since the trigger, the zero time for 0.
func moment(seconds float64) (at time.Time) {
	if seconds > 0 {
		at = trigger.Add(after(seconds))
	}
	return at
}

func perSecond(n, seconds int) []int { return slices.Repeat([]int{n}, seconds) }

// report returns the data from which the report is written.
func (c *reportCase) report(t *testing.T) *report.Stop {
	t.Helper()
	p, err := newPlan(&c.cfg, false, true)
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	p.hook = c.hook
	r := &report.Stop{Terms: p.terms(), Now: moment(cmp.Or(c.now, max(c.at, c.held))), InHold: c.observation()}
	r.TriggeredAt = trigger
	if !c.hook {
		r.Trigger = sig.TERM
		r.Steps = p.stop.ScheduleFor(sig.TERM)
	}
	r.Ended = c.ended
	if c.ended != "" {
		r.EndedAt = moment(c.held)
	}
	if c.ended != "" && c.ended != stop.ChildExit && !c.hook {
		r.Sent = []stop.Sent{{Signal: r.Steps[0].Signal, At: r.EndedAt}}
	}
	if c.at > 0 {
		r.Exit = c.exit
		r.ExitedAt = moment(c.at)
	}
	r.OnStopUntil = moment(c.onStop)
	r.Lull = c.lull
	if c.server != "" {
		r.Server, r.ClosesKept = c.server, c.closesKept
	}
	if c.deaf {
		r.ShellDropped = sig.TERM
	}
	if c.late > 0 {
		late := observation(&observe.Snapshot{Observer: observe.SockDiag, Traffic: traffic.Summary{InFlight: c.late}})
		r.AfterHold = &late
	}
	return r
}

// observation returns the last sample of the hold.
func (c *reportCase) observation() report.Observation {
	s := observe.Snapshot{Observer: cmp.Or(c.observer, observe.SockDiag), Listeners: observe.Listeners{Method: scope.Descriptors, UDP: c.udp, Late: c.ports, Unix: c.unix, Unseen: c.unseen}, Traffic: c.seen, PathsPresent: c.paths}
	if c.observer == noPorts {
		s.Observer = ""
	}
	t := &s.Traffic
	t.PerSecond = c.news
	for _, n := range c.news {
		t.Accepted += n
	}
	t.LastNew = moment(c.lastNew)
	t.LastByte = moment(c.lastByte)
	t.LastOther = moment(max(c.other, 0))
	if c.other == 0 {
		t.LastOther = t.LastNew
	}
	return observation(&s)
}

var reportCases = slices.Concat(stopCases, causeCases, leftOutCases, lullCases)

var stopCases = []reportCase{
	{name: "elapsed, nobody came", cfg: delayed(10), course: course{ended: stop.Elapsed, held: 10, exit: exited, at: 10.4}},
	{name: "elapsed, nothing to see", cfg: delayed(10), course: course{ended: stop.Elapsed, held: 10, exit: exited, at: 10.4}, caseTraffic: caseTraffic{observer: noPorts}},
	{name: "a longer delay than needed", cfg: delayed(15), course: course{ended: stop.Elapsed, held: 15, exit: exited, at: 15.1}, caseTraffic: caseTraffic{news: []int{8, 9, 8, 7, 9, 8, 4, 1}, lastNew: 7.3, lastByte: 7.4}},
	{name: "a delay that just fits", cfg: delayed(9), course: course{ended: stop.Elapsed, held: 9, exit: exited, at: 9.1}, caseTraffic: caseTraffic{news: []int{8, 9, 8, 7, 9, 8, 4, 1}, lastNew: 7.3, lastByte: 7.4}},
	{name: "too short a delay", cfg: delayed(5), course: course{ended: stop.Elapsed, held: 5, exit: exited, at: 7.25}, caseTraffic: caseTraffic{news: perSecond(20, 5), lastNew: 4.9, lastByte: 4.9, seen: traffic.Summary{Open: 12, InFlight: 3}}},
	{name: "a delay, and a request that is long silent", cfg: delayed(10), course: course{ended: stop.Elapsed, held: 10, exit: exited, at: 12}, caseTraffic: caseTraffic{seen: traffic.Summary{Open: 2, LeftOut: traffic.LeftOut{GivenUp: 1}}}},
	{name: "a delay with probes to the end", cfg: delayed(15), course: course{ended: stop.Elapsed, held: 15, exit: exited, at: 15.1}, caseTraffic: caseTraffic{news: perSecond(1, 15), lastNew: 14.6, lastByte: 14.7, other: 3.2, seen: traffic.Summary{Patterns: probing}}},
	{name: "a delay with probes alone", cfg: delayed(15), course: course{ended: stop.Elapsed, held: 15, exit: exited, at: 15.1}, caseTraffic: caseTraffic{news: perSecond(1, 15), lastNew: 14.6, lastByte: 14.7, other: -1, seen: traffic.Summary{Patterns: probing}}},

	{name: "settled", cfg: until(Settled), course: course{ended: stop.Settled, held: 6.5, exit: exited, at: 8}, caseTraffic: caseTraffic{news: []int{3, 1, 1, 0, 0, 0, 0}, lastNew: 2.5, lastByte: 6.4, seen: traffic.Summary{Open: 2, InFlight: 1}}},
	{name: "quiet", cfg: until(Quiet), course: course{ended: stop.Quiet, held: 9.3, exit: termed, at: 9.3}, caseTraffic: caseTraffic{news: []int{5, 5, 5, 5, 4, 1, 0, 0, 0, 0}, lastNew: 5.3, lastByte: 5.3, seen: traffic.Summary{Cause: by(traffic.NewConnections, balancer, 5.3, 5)}}},
	{name: "quiet, one connection", cfg: until(Quiet), course: course{ended: stop.Quiet, held: 4.5, exit: exited, at: 4.6}, caseTraffic: caseTraffic{news: []int{1, 0, 0, 0, 0}, lastNew: 0.4, lastByte: 0.5, seen: traffic.Summary{Open: 1}}},
	{name: "quiet, some given up", cfg: with(until(Quiet), func(c *Config) { c.MaxSilence = 7500 * time.Millisecond }), course: course{ended: stop.Quiet, held: 9, exit: exited, at: 9.1}, caseTraffic: caseTraffic{news: perSecond(0, 9), lastByte: 1.5, seen: traffic.Summary{Open: 3, LeftOut: traffic.LeftOut{GivenUp: 2}}}},
	{name: "quiet, but for probes", cfg: with(until(Quiet), func(c *Config) { c.Probes = IgnoreProbes }), course: course{ended: stop.Quiet, held: 7.3, exit: exited, at: 7.4}, caseTraffic: caseTraffic{news: perSecond(1, 7), lastNew: 3.2, lastByte: 3.3, seen: traffic.Summary{Patterns: probesOut}}},
	{name: "quiet, through /proc/net", cfg: until(Quiet), course: course{ended: stop.Quiet, held: 6, exit: exited, at: 6.1}, caseTraffic: caseTraffic{observer: "/proc/net", news: perSecond(0, 6), lastNew: 2, lastByte: 2}},
	{name: "quiet, through /proc/net, one open", cfg: until(Quiet), course: course{ended: stop.Quiet, held: 5, exit: exited, at: 5.1}, caseTraffic: caseTraffic{observer: "/proc/net", news: perSecond(3, 1), lastNew: 0.9, lastByte: 1, seen: traffic.Summary{Open: 1}}},
	{name: "drained", cfg: until(Drained), course: course{ended: stop.Drained, held: 6.1, exit: exited, at: 6.2}, caseTraffic: caseTraffic{news: perSecond(0, 6)}},
	{name: "a socket file alone", cfg: until(Quiet), course: course{ended: stop.Elapsed, held: 2, exit: exited, at: 2.1}, caseTraffic: caseTraffic{observer: noPorts, unix: []string{"/run/app.sock"}}},

	{name: "sockets that cannot be seen", cfg: until(Quiet), course: course{ended: stop.Elapsed, held: 2, exit: exited, at: 2.1}, caseTraffic: caseTraffic{observer: noPorts, udp: []uint16{53}, unix: []string{"/run/app.sock", "@app"}, unseen: []string{"another network namespace"}}},
	{name: "a socket file beside TCP", cfg: until(Quiet), course: course{ended: stop.Quiet, held: 4, exit: exited, at: 4.1}, caseTraffic: caseTraffic{news: perSecond(0, 4), unix: []string{"/run/app.sock"}}},
	{name: "ceiling, a probe", cfg: with(until(Quiet), func(c *Config) { c.Probes = CountProbes }), course: course{ended: stop.Ceiling, held: 15, exit: exited, at: 15.1}, caseTraffic: caseTraffic{news: perSecond(1, 15), lastNew: 14.6, lastByte: 14.7, other: 3.2, seen: traffic.Summary{Patterns: probing, Cause: byProbe(14.7)}}},
	{name: "ceiling, a probe and others", cfg: until(Quiet), course: course{ended: stop.Ceiling, held: 15, exit: exited, at: 15.1}, caseTraffic: caseTraffic{news: perSecond(9, 15), lastNew: 14.9, lastByte: 14.9, seen: traffic.Summary{Patterns: probing, Cause: by(traffic.NewConnections, balancer, 14.9, 32), Open: 9, InFlight: 2}}},
	{name: "ceiling, a steady rate", cfg: until(Quiet), course: course{ended: stop.Ceiling, held: 15, exit: exited, at: 17}, caseTraffic: caseTraffic{news: perSecond(40, 15), lastNew: 14.9, lastByte: 14.9, seen: traffic.Summary{Open: 8, InFlight: 4, Cause: by(traffic.NewConnections, netip.MustParseAddr("fd00::7"), 14.9, 160)}}},
	{name: "ceiling, a rate that falls", cfg: until(Quiet), course: course{ended: stop.Ceiling, held: 15, exit: exited, at: 15.2}, caseTraffic: caseTraffic{news: []int{40, 41, 39, 40, 30, 20, 10, 5, 5, 5, 4, 3, 2, 2, 1}, lastNew: 14.2, lastByte: 14.9, seen: traffic.Summary{Open: 2, Cause: by(traffic.NewConnections, balancer, 14.2, 7)}}},
	{name: "ceiling, one that streams", cfg: until(Quiet), course: course{ended: stop.Ceiling, held: 15, exit: exited, at: 15.2}, caseTraffic: caseTraffic{news: perSecond(0, 15), lastByte: 14.9, seen: traffic.Summary{Open: 1, Cause: by(traffic.Bytes, balancer, 14.9, 0)}}},
	{name: "ceiling, a request that takes long", cfg: until(Quiet), course: course{ended: stop.Ceiling, held: 15, exit: exited, at: 16}, caseTraffic: caseTraffic{news: perSecond(0, 15), lastByte: 3, seen: traffic.Summary{Open: 1, InFlight: 1, Cause: by(traffic.Requests, balancer, 15, 1)}}},
	{name: "ceiling, one that stays open", cfg: until(Drained), course: course{ended: stop.Ceiling, held: 15, exit: exited, at: 15.1}, caseTraffic: caseTraffic{news: perSecond(0, 15), lastByte: 3, seen: traffic.Summary{Open: 2, Cause: by(traffic.OpenConnections, balancer, 15, 2)}}},
	{name: "ceiling, settled", cfg: until(Settled), course: course{ended: stop.Ceiling, held: 15, exit: exited, at: 15.1}, caseTraffic: caseTraffic{news: append(perSecond(0, 14), 1), lastNew: 14, lastByte: 14.9, seen: traffic.Summary{Open: 2, InFlight: 2, Cause: by(traffic.NewConnections, netip.Addr{}, 14, 1)}}},

	{name: "second signal", cfg: until(Quiet), course: course{ended: stop.SecondSignal, held: 1.8, exit: exited, at: 2}, caseTraffic: caseTraffic{news: perSecond(6, 2), lastNew: 1.7, lastByte: 1.75, seen: traffic.Summary{Open: 6, InFlight: 1}}},
	{name: "interrupt", cfg: delayed(10), course: course{ended: stop.Interrupt, held: 0.4, exit: exited, at: 0.5}},
	{name: "child exit", cfg: until(Quiet), course: course{ended: stop.ChildExit, held: 1.25, exit: stop.Event{Kind: stop.CommandExited, Code: 3}, at: 1.25}, caseTraffic: caseTraffic{news: perSecond(2, 1), lastNew: 0.9, lastByte: 0.95}},
	{name: "no listener", cfg: with(until(Quiet), func(c *Config) { c.Delay, c.DelayGiven = 0, false }), course: course{ended: stop.NoListener, held: 0.01, exit: exited, at: 0.02}, caseTraffic: caseTraffic{observer: noPorts}},
	{name: "no progress", cfg: until(Quiet), course: course{ended: stop.NoProgress, held: 10.2, exit: stop.Event{Kind: stop.CommandExited, Signal: sig.KILL}, at: 30}, caseTraffic: caseTraffic{news: []int{1, 0, 2}, lastNew: 2.5, lastByte: 2.5, seen: traffic.Summary{Open: 3, InFlight: 3}}},
	{name: "udp", cfg: until(Quiet), course: course{ended: stop.UDP, held: 2, exit: exited, at: 2.1}, caseTraffic: caseTraffic{observer: noPorts, udp: []uint16{53}}},
	{name: "udp beside tcp", cfg: until(Quiet), course: course{ended: stop.Quiet, held: 3, exit: exited, at: 3.1}, caseTraffic: caseTraffic{udp: []uint16{53, 8125}}},
	{name: "udp, a whole range", cfg: until(Quiet), course: course{ended: stop.UDP, held: 2, exit: exited, at: 2.1}, caseTraffic: caseTraffic{observer: noPorts, udp: slices.Collect(portRange(10000, 20000))}},
	{name: "blind", cfg: until(Quiet), course: course{ended: stop.Unobserved, held: 15, exit: exited, at: 15.1}, caseTraffic: caseTraffic{observer: observe.None}},

	{name: "a shell that keeps it", cfg: delayed(2), course: course{ended: stop.Elapsed, held: 2, exit: stop.Event{Kind: stop.CommandExited, Signal: sig.KILL}, at: 30, deaf: true}},
	{name: "our own kill, rewritten", cfg: with(delayed(2), func(c *Config) { c.Rewrites = []Rewrite{{From: sig.TERM, To: sig.KILL}} }), course: course{ended: stop.Elapsed, held: 2, exit: stop.Event{Kind: stop.CommandExited, Signal: sig.KILL}, at: 2.1}},
	{name: "an assumed grace period, too short", cfg: Config{Delay: 12 * time.Second}, course: course{ended: stop.Elapsed, held: 12, exit: exited, at: 12.1}},
	{name: "lengths that are not round", cfg: Config{Until: Quiet, MaxSilence: 17 * time.Second / 6}, course: course{ended: stop.Quiet, held: 2.9, exit: exited, at: 3}, caseTraffic: caseTraffic{seen: traffic.Summary{Open: 1, LeftOut: traffic.LeftOut{GivenUp: 1}}}},

	{name: "holding yet, at the end of the grace period", cfg: Config{Delay: 12 * time.Second}, now: 9, caseTraffic: caseTraffic{seen: traffic.Summary{Open: 4, InFlight: 3}}},
	{name: "running yet, at the end of the grace period", cfg: until(Quiet), now: 29, course: course{ended: stop.Quiet, held: 8}, caseTraffic: caseTraffic{late: 3}},
	{name: "running yet, as a shell", cfg: until(Quiet), now: 29, course: course{ended: stop.Quiet, held: 8, deaf: true}},
	{name: "holding yet, and blind", cfg: Config{Delay: 12 * time.Second}, now: 9, caseTraffic: caseTraffic{observer: observe.None}},
	{name: "a hook, at the end of the grace period", cfg: Config{Delay: 12 * time.Second}, hook: true, now: 9, caseTraffic: caseTraffic{seen: traffic.Summary{Open: 4, InFlight: 3}}},

	{name: "a hook, quiet", cfg: until(Quiet), hook: true, course: course{ended: stop.Quiet, held: 5.25}, caseTraffic: caseTraffic{news: []int{2, 1, 1, 0, 0, 0}, lastNew: 2.2, lastByte: 2.25}},
	{name: "a hook, skipped", cfg: until(Quiet), hook: true, course: course{ended: stop.SecondSignal, held: 0.3}, caseTraffic: caseTraffic{news: perSecond(0, 1)}},
	{name: "a hook, delay alone", cfg: delayed(18), hook: true, course: course{ended: stop.Elapsed, held: 18}, caseTraffic: caseTraffic{news: perSecond(3, 7), lastNew: 6.9, lastByte: 7}},
}

func portRange(from, to uint16) func(func(uint16) bool) {
	return func(yield func(uint16) bool) {
		for port := from; port < to && yield(port); port++ {
		}
	}
}

// reportFile is the golden file with the report of every case.
var reportFile = testutil.Path("testdata/report.txt")

// TestReport: the report of each case, in words and in JSON, is the golden one.
func TestReport(t *testing.T) {
	var b strings.Builder
	for _, s := range reportCases {
		d := s.report(t)
		line := d.Conclusion
		if s.at == 0 && s.now > 0 {
			line = d.Late
		}
		fmt.Fprintf(&b, "# %s\n%s\n%s\n%s\n\n", s.name, d.Announcement(), line(), plain(t, jsonLine(Info, "", d.Figures())))
	}
	if got, want := b.String(), read(t, reportFile); *update {
		if err := os.WriteFile(reportFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	return string(text)
}

// plain removes the fields that every line in JSON has.
func plain(t *testing.T, line string) string {
	t.Helper()
	_, figures, found := strings.Cut(line, `"message":"",`)
	if !found {
		t.Errorf("no message in %s", line)
	}
	return "{" + figures
}

// TestReportCovers: the cases cover every reason for the end of a hold, every line is short
// enough to be written whole, and unknown values stay out.
func TestReportCovers(t *testing.T) {
	reasons := map[stop.Reason]bool{}
	causes := map[traffic.CauseKind]bool{}
	for _, s := range reportCases {
		d := s.report(t)
		reasons[s.ended] = true
		causes[s.seen.Cause.Kind] = true
		for _, line := range []string{d.Announcement(), d.Conclusion(), d.Progress(), d.Late()} {
			if utf8.RuneCountInString("lameduck: "+line) > report.MaxWidth || strings.Contains(line, "\n") || strings.Contains(line, "%!") || strings.Contains(line, ";;") || strings.Contains(line, "invalid") {
				t.Errorf("%s: %s", s.name, line)
			}
		}
		if f := d.Figures(); (f.Observer == nil || *f.Observer == observe.None) && hasTraffic(f) {
			t.Errorf("%s: nothing was seen, and yet %+v", s.name, f)
		}
		if f := d.Figures(); f.ProlongedBy != nil && f.Accepted == nil && len(s.cfg.WaitGone) == 0 && len(s.cfg.OnStop) == 0 {
			t.Errorf("%s: nothing was seen, and yet prolonged by %s", s.name, *f.ProlongedBy)
		}
	}
	for kind := range traffic.OpenConnections + 1 {
		if !causes[kind] {
			t.Errorf("no report with a cause of kind %d", kind)
		}
	}
	for _, why := range []stop.Reason{stop.Elapsed, stop.Settled, stop.Quiet, stop.Drained, stop.Kept, stop.Ceiling, stop.SecondSignal, stop.Interrupt,
		stop.ChildExit, stop.NoListener, stop.NoProgress, stop.UDP, stop.Unobserved} {
		if !reasons[why] {
			t.Errorf("no report of %s", why)
		}
	}
}

// hasTraffic reports whether a report has figures of the traffic.
func hasTraffic(f *report.Figures) bool {
	return f.Accepted != nil || f.Open != nil || f.InFlight != nil || f.Scope != nil || f.LastNewMS != nil || f.LastByteMS != nil ||
		f.LeftOut != nil || f.NewPorts != nil || f.Peer != nil
}

// reportNames are the promised names of a report in JSON.
const reportNames = "trigger held_ms ended floor_ms ceiling_ms accepted last_new_ms last_byte_ms open in_flight left_out new_ports sent lull exit_code exit_signal " +
	"grace_used_ms grace_assumed observer scope prolonged_by prolonged_by_peer suggestion details"

// TestReportNames: a report in JSON always has all names, every other line the first four.
func TestReportNames(t *testing.T) {
	const all = "schema time level message"
	names := func(line string) (list []string) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		for _, m := range regexp.MustCompile(`[{,]"([a-z_]+)":`).FindAllStringSubmatch(line, -1) {
			if _, outer := object[m[1]]; outer {
				list = append(list, m[1])
			}
		}
		return list
	}
	for _, s := range reportCases {
		if got, want := names(jsonLine(Info, "a line", s.report(t).Figures())), strings.Fields(all+" "+reportNames); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the names are\n%v, want\n%v", s.name, got, want)
		}
	}
	if got := names(jsonLine(Warn, "a line", nil)); !reflect.DeepEqual(got, strings.Fields(all)) {
		t.Errorf("the names are %v, want %s", got, all)
	}
}

// TestJSONLine: any message becomes one object, short enough for one write.
func TestJSONLine(t *testing.T) {
	for _, message := range []string{"", `"\`, "\x00\x1b\n\r", "\xff\xfe", "«▁█»", "<&>", strings.Repeat("x", 100_000), strings.Repeat("\x01", 5000), strings.Repeat("x\xff", 2500), strings.Repeat("▁", 3000)} {
		for _, f := range []*report.Figures{nil, reportCases[0].report(t).Figures()} {
			line := jsonLine(Warn, message, f)
			var object struct{ Message string }
			if err := json.Unmarshal([]byte(line), &object); err != nil || len(line) > 4095 || strings.Contains(line, "\n") {
				t.Errorf("%.20q: %d bytes: %v", message, len(line), err)
			}
			if n := len(object.Message); len(message) < 500 && object.Message != quote.Line(message) || len(message) > 500 && n < 300 {
				t.Errorf("%.20q became %.20q, of %d bytes", message, object.Message, n)
			}
		}
	}
}

// loggedEntry is a line in JSON.
type loggedEntry struct {
	Schema         int
	Time           time.Time
	Level, Message string
	report.Figures
}

// lineRecorder is an output that only records lines.
type lineRecorder struct {
	outputHost
	lines *[]string
}

func (r lineRecorder) writeLine(text string) { *r.lines = append(*r.lines, text) }

// TestLevels: every level has a name in JSON and a prefix in text.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		level Level
		text  string
		json  string
	}{{Error, "lameduck: x 1", "error"}, {Warn, "lameduck: warning: x 1", "warn"}, {Info, "lameduck: x 1", "info"}, {Debug, "lameduck: x 1", "debug"}} {
		for _, inJSON := range []bool{false, true} {
			var said []string
			l := &loop{cfg: &Config{Level: c.level, JSON: inJSON}, host: host{output: lineRecorder{lines: &said}}}
			l.log(c.level, "x %d", 1)
			l.log(c.level+1, "not said")
			want := c.text
			if inJSON {
				var e loggedEntry
				if len(said) != 1 || json.Unmarshal([]byte(said[0]), &e) != nil || e.Level != c.json || e.Message != "x 1" || e.Schema != 1 || time.Since(e.Time) > time.Minute {
					t.Errorf("said %q", said)
				}
			} else if !slices.Equal(said, []string{want}) {
				t.Errorf("said %q, want %q", said, want)
			}
		}
	}
}

// TestGapInJSON: dropped lines are reported in the format of the other lines.
func TestGapInJSON(t *testing.T) {
	var e loggedEntry
	if line := newStderr(2, true).DroppedText(7); json.Unmarshal([]byte(line), &e) != nil || e.Level != "warn" || !strings.HasPrefix(e.Message, "7 lines dropped") {
		t.Errorf("it says %s", line)
	}
	if line := newStderr(2, false).DroppedText(7); !strings.HasPrefix(line, "lameduck: 7 lines dropped") {
		t.Errorf("it says %s", line)
	}
}

// TestReportDocs: docs/report.md explains exactly the names and reasons that exist, and the
// page's example has all names.
func TestReportDocs(t *testing.T) {
	page := read(t, testutil.Path("docs/report.md"))
	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|.*\\|$").FindAllStringSubmatch(page, -1) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	want := strings.Fields("schema time level message " + reportNames + " elapsed settled quiet drained kept ceiling second_signal interrupt child_exit no_listener no_progress udp blind")
	if !slices.Equal(names, want) {
		t.Errorf("the page has\n%q\nwant\n%q", names, want)
	}
	_, example, _ := strings.Cut(page, "```json\n")
	example, _, _ = strings.Cut(example, "\n```")
	var e loggedEntry
	if err := json.Unmarshal([]byte(example), &e); err != nil || plain(t, strings.ReplaceAll(jsonLine(Info, "", &e.Figures), "\n", "")) != "{"+example[strings.Index(example, `"trigger"`):] {
		t.Errorf("the example is not what is said now: %v", err)
	}
}
