package shim

import (
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

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// stopped is a stop for a test of the report: what was asked for, and what came
// of it. Times are seconds from the trigger.
type stopped struct {
	name  string
	cfg   Config
	hook  bool
	ended stop.Reason
	held  float64
	exit  stop.Event
	at    float64 // when it exited; 0: it has not
	now   float64 // 0: when it exited
	deaf  bool

	observer string // "": sock_diag; "nothing": there is nothing to see
	udp      []uint16
	seen     traffic.Summary
	news     []int   // new connections in each second
	lastNew  float64 // 0: none
	lastByte float64
	other    float64 // the last that is no probe; 0: lastNew
	late     int     // in flight at the last look; 0: there was none
}

const nothing = "nothing"

var (
	trigger = time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)
	kubelet = netip.MustParseAddr("10.0.0.1")
	probing = []traffic.Pattern{{Peer: kubelet, Port: 80, Received: 132, Period: time.Second}}
	exited  = stop.Event{Kind: stop.CommandExited}
	termed  = stop.Event{Kind: stop.CommandExited, Signal: sig.TERM}
)

// until is a configuration that holds 2 s to 15 s.
func until(c Condition) Config {
	return Config{Until: c, Delay: 2 * time.Second, DelayGiven: true, MaxDelay: 15 * time.Second, GracePeriod: 30 * time.Second}
}

func delayed(seconds float64) Config {
	return Config{Delay: after(seconds), GracePeriod: 30 * time.Second}
}

func with(cfg Config, change func(c *Config)) Config {
	change(&cfg)
	return cfg
}

func after(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// moment is a time since the trigger, or none.
func moment(seconds float64) (at time.Time) {
	if seconds > 0 {
		at = trigger.Add(after(seconds))
	}
	return at
}

func even(n, seconds int) []int { return slices.Repeat([]int{n}, seconds) }

// drain is what the report is written from.
func (s *stopped) drain(t *testing.T) *drain {
	t.Helper()
	p, err := s.cfg.plan(false, true)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	p.hook = s.hook
	d := &drain{plan: &p, now: moment(s.now)}
	if s.deaf {
		d.deaf = sig.TERM
	}
	d.TriggeredAt = trigger
	if !s.hook {
		d.Trigger, d.Steps = sig.TERM, p.stop.ScheduleFor(sig.TERM)
	}
	if d.Ended = s.ended; s.ended != "" {
		d.EndedAt = moment(s.held)
		if !s.hook && s.ended != stop.ChildExit {
			d.Sent = []stop.Sent{{Signal: d.Steps[0].Signal, At: d.EndedAt}}
		}
	}
	if s.at > 0 {
		d.Exit, d.ExitedAt = s.exit, moment(s.at)
	}
	if d.now.IsZero() {
		d.now = moment(max(s.at, s.held))
	}
	d.Snapshot = s.snapshot()
	if s.late > 0 {
		d.late = &observe.Snapshot{Observer: observe.SockDiag, Traffic: traffic.Summary{InFlight: s.late}}
	}
	return d
}

func (s *stopped) snapshot() observe.Snapshot {
	seen := observe.Snapshot{Observer: observe.SockDiag, Listeners: observe.Listeners{Method: scope.Descriptors, UDP: s.udp}, Traffic: s.seen}
	switch s.observer {
	case "":
	case nothing:
		seen.Observer = ""
	default:
		seen.Observer = s.observer
	}
	r := &seen.Traffic
	r.PerSecond, r.Accepted = s.news, sum(s.news)
	r.LastNew, r.LastByte, r.LastOther = moment(s.lastNew), moment(s.lastByte), moment(max(s.other, 0))
	if s.other == 0 {
		r.LastOther = r.LastNew
	}
	return seen
}

var reports = []stopped{
	{name: "elapsed, nobody came", cfg: delayed(10), ended: stop.Elapsed, held: 10, exit: exited, at: 10.4},
	{name: "elapsed, nothing to see", cfg: delayed(10), ended: stop.Elapsed, held: 10, exit: exited, at: 10.4, observer: nothing},
	{name: "a longer delay than needed", cfg: delayed(15), ended: stop.Elapsed, held: 15, exit: exited, at: 15.1, news: []int{8, 9, 8, 7, 9, 8, 4, 1}, lastNew: 7.3, lastByte: 7.4},
	{name: "a delay that just fits", cfg: delayed(9), ended: stop.Elapsed, held: 9, exit: exited, at: 9.1, news: []int{8, 9, 8, 7, 9, 8, 4, 1}, lastNew: 7.3, lastByte: 7.4},
	{name: "too short a delay", cfg: delayed(5), ended: stop.Elapsed, held: 5, exit: exited, at: 7.25, news: even(20, 5), lastNew: 4.9, lastByte: 4.9, seen: traffic.Summary{Open: 12, InFlight: 3}},
	{name: "a delay, and a request that is long silent", cfg: delayed(10), ended: stop.Elapsed, held: 10, exit: exited, at: 12, seen: traffic.Summary{Open: 2, GivenUp: 1}},
	{name: "a delay with probes to the end", cfg: delayed(15), ended: stop.Elapsed, held: 15, exit: exited, at: 15.1, news: even(1, 15), lastNew: 14.6, lastByte: 14.7, other: 3.2, seen: traffic.Summary{Patterns: probing}},
	{name: "a delay with probes alone", cfg: delayed(15), ended: stop.Elapsed, held: 15, exit: exited, at: 15.1, news: even(1, 15), lastNew: 14.6, lastByte: 14.7, other: -1, seen: traffic.Summary{Patterns: probing}},

	{name: "settled", cfg: until(Settled), ended: stop.Settled, held: 5.5, exit: exited, at: 7, news: []int{3, 1, 1, 0, 0, 0}, lastNew: 2.5, lastByte: 5.4, seen: traffic.Summary{Open: 2, InFlight: 1}},
	{name: "quiet", cfg: until(Quiet), ended: stop.Quiet, held: 8.3, exit: termed, at: 8.3, news: []int{5, 5, 5, 5, 4, 1, 0, 0, 0}, lastNew: 5.3, lastByte: 5.3},
	{name: "quiet, one connection", cfg: until(Quiet), ended: stop.Quiet, held: 3.5, exit: exited, at: 3.6, news: []int{1, 0, 0, 0}, lastNew: 0.4, lastByte: 0.5, seen: traffic.Summary{Open: 1}},
	{name: "quiet, some given up", cfg: until(Quiet), ended: stop.Quiet, held: 9, exit: exited, at: 9.1, news: even(0, 9), lastByte: 1.5, seen: traffic.Summary{Open: 3, GivenUp: 2}},
	{name: "quiet, but for probes", cfg: with(until(Quiet), func(c *Config) { c.IgnoreProbes = true }), ended: stop.Quiet, held: 6.4, exit: exited, at: 6.5, news: even(1, 6), lastNew: 3.2, lastByte: 3.3, seen: traffic.Summary{Patterns: probing}},
	{name: "quiet, through /proc/net", cfg: until(Quiet), ended: stop.Quiet, held: 5, exit: exited, at: 5.1, observer: "/proc/net", news: even(0, 5), lastNew: 2, lastByte: 2},
	{name: "quiet, through /proc/net, one open", cfg: until(Quiet), ended: stop.Quiet, held: 5, exit: exited, at: 5.1, observer: "/proc/net", news: even(3, 1), lastNew: 0.9, lastByte: 1, seen: traffic.Summary{Open: 1}},
	{name: "drained", cfg: until(Drained), ended: stop.Drained, held: 6.1, exit: exited, at: 6.2, news: even(0, 6)},
	{name: "a socket file alone", cfg: until(Quiet), ended: stop.Quiet, held: 2, exit: exited, at: 2.1, observer: nothing},

	{name: "ceiling, a probe", cfg: until(Quiet), ended: stop.Ceiling, held: 15, exit: exited, at: 15.1, news: even(1, 15), lastNew: 14.6, lastByte: 14.7, other: 3.2, seen: traffic.Summary{Patterns: probing, LastPeer: kubelet}},
	{name: "ceiling, a probe and others", cfg: until(Quiet), ended: stop.Ceiling, held: 15, exit: exited, at: 15.1, news: even(9, 15), lastNew: 14.9, lastByte: 14.9, seen: traffic.Summary{Patterns: probing, LastPeer: netip.MustParseAddr("10.0.0.7"), Open: 9, InFlight: 2}},
	{name: "ceiling, a steady rate", cfg: until(Quiet), ended: stop.Ceiling, held: 15, exit: exited, at: 17, news: even(40, 15), lastNew: 14.9, lastByte: 14.9, seen: traffic.Summary{Open: 8, InFlight: 4, LastPeer: netip.MustParseAddr("fd00::7")}},
	{name: "ceiling, a rate that falls", cfg: until(Quiet), ended: stop.Ceiling, held: 15, exit: exited, at: 15.2, news: []int{40, 41, 39, 40, 30, 20, 10, 5, 5, 5, 4, 3, 2, 2, 1}, lastNew: 14.2, lastByte: 14.9, seen: traffic.Summary{Open: 2, LastPeer: netip.MustParseAddr("10.0.0.7")}},
	{name: "ceiling, one that streams", cfg: until(Quiet), ended: stop.Ceiling, held: 15, exit: exited, at: 15.2, news: even(0, 15), lastByte: 14.9, seen: traffic.Summary{Open: 1, LastPeer: netip.MustParseAddr("10.0.0.7")}},
	{name: "ceiling, a request that takes long", cfg: until(Quiet), ended: stop.Ceiling, held: 15, exit: exited, at: 16, news: even(0, 15), lastByte: 3, seen: traffic.Summary{Open: 1, InFlight: 1}},
	{name: "ceiling, one that stays open", cfg: until(Drained), ended: stop.Ceiling, held: 15, exit: exited, at: 15.1, news: even(0, 15), lastByte: 3, seen: traffic.Summary{Open: 2}},
	{name: "ceiling, settled", cfg: until(Settled), ended: stop.Ceiling, held: 15, exit: exited, at: 15.1, news: append(even(0, 14), 1), lastNew: 14, lastByte: 14.9, seen: traffic.Summary{Open: 2, InFlight: 2}},

	{name: "second signal", cfg: until(Quiet), ended: stop.SecondSignal, held: 1.8, exit: exited, at: 2, news: even(6, 2), lastNew: 1.7, lastByte: 1.75, seen: traffic.Summary{Open: 6, InFlight: 1}},
	{name: "interrupt", cfg: delayed(10), ended: stop.Interrupt, held: 0.4, exit: exited, at: 0.5},
	{name: "child exit", cfg: until(Quiet), ended: stop.ChildExit, held: 1.25, exit: stop.Event{Kind: stop.CommandExited, Code: 3}, at: 1.25, news: even(2, 1), lastNew: 0.9, lastByte: 0.95},
	{name: "no listener", cfg: with(until(Quiet), func(c *Config) { c.DelayGiven = false }), ended: stop.NoListener, held: 0.01, exit: exited, at: 0.02, observer: nothing},
	{name: "no progress", cfg: until(Quiet), ended: stop.NoProgress, held: 10.2, exit: stop.Event{Kind: stop.CommandExited, Signal: sig.KILL}, at: 30, news: []int{1, 0, 2}, lastNew: 2.5, lastByte: 2.5, seen: traffic.Summary{Open: 3, InFlight: 3}},
	{name: "udp", cfg: until(Quiet), ended: stop.UDP, held: 2, exit: exited, at: 2.1, observer: nothing, udp: []uint16{53}},
	{name: "udp beside tcp", cfg: until(Quiet), ended: stop.Quiet, held: 3, exit: exited, at: 3.1, udp: []uint16{53, 8125}},
	{name: "udp, a whole range", cfg: until(Quiet), ended: stop.UDP, held: 2, exit: exited, at: 2.1, observer: nothing, udp: slices.Collect(portRange(10000, 20000))},
	{name: "blind", cfg: until(Quiet), ended: stop.Unobserved, held: 15, exit: exited, at: 15.1, observer: observe.None},

	{name: "a shell that keeps it", cfg: delayed(2), ended: stop.Elapsed, held: 2, exit: stop.Event{Kind: stop.CommandExited, Signal: sig.KILL}, at: 30, deaf: true},
	{name: "our own kill, rewritten", cfg: with(delayed(2), func(c *Config) { c.Rewrites = []Rewrite{{From: sig.TERM, To: sig.KILL}} }), ended: stop.Elapsed, held: 2, exit: stop.Event{Kind: stop.CommandExited, Signal: sig.KILL}, at: 2.1},
	{name: "an assumed grace period, too short", cfg: Config{Delay: 12 * time.Second}, ended: stop.Elapsed, held: 12, exit: exited, at: 12.1},
	{name: "lengths that are not round", cfg: Config{Until: Quiet}, ended: stop.Quiet, held: 2.9, exit: exited, at: 3, seen: traffic.Summary{Open: 1, GivenUp: 1}},

	{name: "holding yet, at the end of the grace period", cfg: Config{Delay: 12 * time.Second}, now: 9, seen: traffic.Summary{Open: 4, InFlight: 3}},
	{name: "running yet, at the end of the grace period", cfg: until(Quiet), ended: stop.Quiet, held: 8, now: 29, late: 3},
	{name: "running yet, as a shell", cfg: until(Quiet), ended: stop.Quiet, held: 8, now: 29, deaf: true},
	{name: "holding yet, and blind", cfg: Config{Delay: 12 * time.Second}, now: 9, observer: observe.None},
	{name: "a hook, at the end of the grace period", cfg: Config{Delay: 12 * time.Second}, hook: true, now: 9, seen: traffic.Summary{Open: 4, InFlight: 3}},

	{name: "a hook, quiet", cfg: until(Quiet), hook: true, ended: stop.Quiet, held: 5.25, news: []int{2, 1, 1, 0, 0, 0}, lastNew: 2.2, lastByte: 2.25},
	{name: "a hook, skipped", cfg: until(Quiet), hook: true, ended: stop.SecondSignal, held: 0.3, news: even(0, 1)},
	{name: "a hook, delay alone", cfg: delayed(18), hook: true, ended: stop.Elapsed, held: 18, news: even(3, 7), lastNew: 6.9, lastByte: 7},
}

func portRange(from, to uint16) func(func(uint16) bool) {
	return func(yield func(uint16) bool) {
		for port := from; port < to && yield(port); port++ {
		}
	}
}

// reportFile has what is said of every stop above.
var reportFile = testutil.Path("testdata/report.txt")

// TestReport: what is said of a stop, to people and to machines.
func TestReport(t *testing.T) {
	var b strings.Builder
	for _, s := range reports {
		d := s.drain(t)
		line := d.conclusion
		if s.at == 0 && s.now > 0 {
			line = d.overtime
		}
		fmt.Fprintf(&b, "# %s\n%s\n%s\n%s\n\n", s.name, d.announcement(), line(), plain(t, jsonLine("info", "", d.figures())))
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

// plain is a line in JSON without what every line has.
func plain(t *testing.T, line string) string {
	t.Helper()
	_, figures, found := strings.Cut(line, `"message":"",`)
	if !found {
		t.Errorf("no message in %s", line)
	}
	return "{" + figures
}

// TestReportCovers: every reason for an end is above, every line is short enough to
// be written whole, and none says what is not known.
func TestReportCovers(t *testing.T) {
	reasons := map[stop.Reason]bool{}
	for _, s := range reports {
		d := s.drain(t)
		reasons[s.ended] = true
		for _, line := range []string{d.announcement(), d.conclusion(), d.progress(), d.overtime()} {
			if len(line) > 700 || strings.Contains(line, "\n") || strings.Contains(line, "%!") || strings.Contains(line, ";;") || strings.Contains(line, "invalid") {
				t.Errorf("%s: %s", s.name, line)
			}
		}
		if f := d.figures(); (f.Observer == nil || *f.Observer == observe.None) && (f.Accepted != nil || f.Open != nil || f.InFlight != nil || f.Scope != nil || f.LastNewMS != nil || f.LastByteMS != nil || f.ProlongedBy != nil) {
			t.Errorf("%s: nothing was seen, and yet %+v", s.name, f)
		}
	}
	for _, why := range []stop.Reason{stop.Elapsed, stop.Settled, stop.Quiet, stop.Drained, stop.Ceiling, stop.SecondSignal, stop.Interrupt,
		stop.ChildExit, stop.NoListener, stop.NoProgress, stop.UDP, stop.Unobserved} {
		if !reasons[why] {
			t.Errorf("no report of %s", why)
		}
	}
}

// reportNames are promised.
const reportNames = "trigger held_ms ended floor_ms ceiling_ms accepted last_new_ms last_byte_ms open in_flight sent exit_code exit_signal " +
	"grace_used_ms grace_assumed observer scope prolonged_by suggestion"

// TestReportNames: a report in JSON has these names whatever is known, every other
// line the first four.
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
	for _, s := range reports {
		if got, want := names(jsonLine("info", "a line", s.drain(t).figures())), strings.Fields(all+" "+reportNames); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the names are\n%v, want\n%v", s.name, got, want)
		}
	}
	if got := names(jsonLine("warn", "a line", nil)); !reflect.DeepEqual(got, strings.Fields(all)) {
		t.Errorf("the names are %v, want %s", got, all)
	}
}

// TestJSONLine: whatever is said is one object, which standard error takes whole.
func TestJSONLine(t *testing.T) {
	for _, message := range []string{"", `"\`, "\x00\x1b\n\r", "\xff\xfe", "«▁█»", "<&>", strings.Repeat("x", 100_000), strings.Repeat("\x01", 5000), strings.Repeat("x\xff", 2500), strings.Repeat("▁", 3000)} {
		for _, f := range []*figures{nil, reports[0].drain(t).figures()} {
			line := jsonLine("warn", message, f)
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

// TestLevels: every level has its word, and its form.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		level Level
		text  string
		json  string
	}{{Error, "lameduck: x 1", "error"}, {Warn, "lameduck: warning: x 1", "warn"}, {Info, "lameduck: x 1", "info"}, {Debug, "lameduck: x 1", "debug"}} {
		for _, inJSON := range []bool{false, true} {
			var said []string
			l := &loop{cfg: &Config{Level: c.level, JSON: inJSON}, kernel: kernel{line: func(text string) { said = append(said, text) }}}
			l.log(c.level, "x %d", 1)
			l.log(c.level+1, "not said")
			want := c.text
			if inJSON {
				var e entry
				if len(said) != 1 || json.Unmarshal([]byte(said[0]), &e) != nil || e.Level != c.json || e.Message != "x 1" || e.Schema != 1 || time.Since(e.Time) > time.Minute {
					t.Errorf("said %q", said)
				}
			} else if !slices.Equal(said, []string{want}) {
				t.Errorf("said %q, want %q", said, want)
			}
		}
	}
}

// TestGapInJSON: where lines are missing that is said in JSON too.
func TestGapInJSON(t *testing.T) {
	var e entry
	if line := speaker(2, true).DroppedText(7); json.Unmarshal([]byte(line), &e) != nil || e.Level != "warn" || !strings.HasPrefix(e.Message, "7 lines dropped") {
		t.Errorf("it says %s", line)
	}
	if line := speaker(2, false).DroppedText(7); !strings.HasPrefix(line, "lameduck: 7 lines dropped") {
		t.Errorf("it says %s", line)
	}
}

// TestSparkline: one bar for each second, or for as many as it takes to need no
// more than 30; nothing is the lowest bar, and the most the highest.
func TestSparkline(t *testing.T) {
	const huge = 1 << 40
	for _, c := range []struct {
		news []int
		want string
	}{
		{nil, ""},
		{[]int{0}, "▁"},
		{[]int{1}, "█"},
		{[]int{0, 0, 0}, "▁▁▁"},
		{[]int{0, 1, 2, 3, 4, 5, 6, 7}, "▁▂▃▄▅▆▇█"},
		{[]int{1, 1000}, "▂█"},
		{[]int{huge, 0, 1, huge / 2}, "█▁▂▅"},
		{even(3, 30), strings.Repeat("█", 30)},
		{append(even(3, 30), 3), strings.Repeat("█", 15) + "▅"},
		{append(even(0, 59), 1), strings.Repeat("▁", 29) + "█"},
		{even(huge, 3600), strings.Repeat("█", 30)},
	} {
		if got := sparkline(c.news); got != c.want {
			t.Errorf("of %d seconds %s, want %s", len(c.news), got, c.want)
		}
	}
	for n := range 4000 {
		if got := []rune(sparkline(even(1, n))); len(got) > columns || n >= columns && len(got) <= columns/2 {
			t.Errorf("of %d seconds %d bars", n, len(got))
		}
	}
}

func TestNumbers(t *testing.T) {
	for want, ports := range map[string][]uint16{
		"": nil, "53": {53}, "53, 8125": {53, 8125}, "1, 2, 3, 4, 5, 6, 7, 8": {1, 2, 3, 4, 5, 6, 7, 8},
		"1, 2, 3, 4, 5, 6, 7, 8 and 2 more": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
	} {
		if got := numbers(ports); got != want {
			t.Errorf("%v is %q, want %q", ports, got, want)
		}
	}
}

// TestReportDocs: the page about the report explains every name and every reason,
// and no other; its example has them all.
func TestReportDocs(t *testing.T) {
	page := read(t, testutil.Path("docs/report.md"))
	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|.*\\|$").FindAllStringSubmatch(page, -1) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	want := strings.Fields("schema time level message " + reportNames + " elapsed settled quiet drained ceiling second_signal interrupt child_exit no_listener no_progress udp blind")
	if !slices.Equal(names, want) {
		t.Errorf("the page has\n%q\nwant\n%q", names, want)
	}
	_, example, _ := strings.Cut(page, "```json\n")
	example, _, _ = strings.Cut(example, "\n```")
	var e entry
	e.figures = &figures{}
	if err := json.Unmarshal([]byte(example), &e); err != nil || plain(t, strings.ReplaceAll(jsonLine("info", "", e.figures), "\n", "")) != "{"+example[strings.Index(example, `"trigger"`):] {
		t.Errorf("the example is not what is said now: %v", err)
	}
}
