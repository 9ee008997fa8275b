package watch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/cost"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/stderr"
	"github.com/lameduck-init/lameduck/shim/internal/termlog"
)

// showEvery is the time between two views.
const showEvery = time.Second

// known is how long before the first view bytes count. The kernel knows the age of the last
// byte of a connection: an idle server is quiet from the first view on.
const known = time.Hour

// doubledTERM is the time after a TERM in which another is the same one.
const doubledTERM = time.Second

// The intervals of samples: as long as the server listens, and after its end, where each reset has
// its time by the sample that counts it.
const (
	watchInterval = 250 * time.Millisecond
	endedInterval = 100 * time.Millisecond
)

// Run watches until a signal ends it. print gets lines: the traffic once a second, unless standard output is
// not read or onlyStops is set, what has happened, and what a stop has cost. An error of print ends Run.
func Run(p *plan.Plan, onlyStops bool, print func(line string) error, log *termlog.Writer) error {
	w := newWatch(p, print, log, time.Now())
	w.onlyStops = onlyStops
	cfg := observe.Config{
		Start: w.start, Traffic: p.Traffic, Letgo: p.Letgo, Ports: p.CountPorts, EveryPort: true, Wake: sigcatch.Wake,
	}
	cfg.Traffic.Poll = cost.LateEvent - endedInterval // after that the event of a missing connection is lost
	w.sampler = observe.Start(cfg, w.samples)
	return w.run()
}

// run handles samples and signals. A fault of lameduck's own is an error, after what is known.
func (w *watch) run() (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("a fault of lameduck's own, %v; please report it", fault)
			defer func() { recover() }()
			w.conclude()
		}
	}()
	for !w.done && w.err == nil {
		select {
		case next := <-w.samples:
			w.onSample(&next, w.judge(&next))
		default: // a sample wakes Next, too
			w.onSignal(sigcatch.Next(time.Time{}, [2]int{}))
		}
	}
	w.conclude()
	return w.err
}

// watch is what Run knows.
type watch struct {
	onlyStops bool
	print     func(line string) error
	termlog   *termlog.Writer
	start     time.Time // of what counts

	sampler *observe.Sampler
	samples chan observe.Snapshot // of the sampler
	tracker *cost.Tracker
	cost    report.Cost
	minute  []count // of the samples of a minute, up to the beginning of the stop

	viewDue   time.Time
	viewed    int      // connections, as of the last view
	news      []string // of the latest sample, as was said
	announced bool     // what TERM begins, as was said
	said      saying   // of the ends so far

	endedAt time.Time // when a signal ended watch
	done    bool
	err     error // of the first line that could not be written
}

// saying is what was said about the ends of ports.
type saying int

const (
	saidNothing saying = iota
	saidLoss           // what they had cost at once
	saidVerdict
)

// count is the number of connections up to a moment.
type count struct {
	at       time.Time
	accepted int
}

// countMinute counts the connections of the last minute.
func (w *watch) countMinute(accepted int) {
	w.minute = append(w.minute, count{w.cost.Now, accepted})
	for w.cost.Now.Sub(w.minute[0].at) > time.Minute {
		w.minute = w.minute[1:]
	}
	w.cost.Accepted = accepted - w.minute[0].accepted
}

func newWatch(p *plan.Plan, print func(string) error, log *termlog.Writer, now time.Time) *watch {
	return &watch{
		print: print, termlog: log, start: now.Add(-known), viewDue: now.Add(showEvery),
		samples: make(chan observe.Snapshot, 1), tracker: cost.New(),
		cost: report.Cost{Plan: p},
	}
}

// onSignal handles a signal, or 0. What has happened since the latest sample is in the next one.
func (w *watch) onSignal(signal sig.Signal) {
	now := time.Now()
	w.cost.Now = now
	switch signal {
	case sig.TERM:
		w.cost.TERM = cmp.Or(w.cost.TERM, now)
		if now.Sub(w.cost.TERM) < doubledTERM {
			return
		}
	case sig.INT, sig.HUP, sig.QUIT:
	default:
		return
	}
	w.done = !w.endedAt.IsZero()
	w.endedAt = now
}

// judge judges a sample, and lets the sampler go on.
func (w *watch) judge(next *observe.Snapshot) cost.Result {
	if next.Fault != nil {
		panic(next.Fault)
	}
	c := &w.cost
	result := w.tracker.Judge(next.Ledger, &next.Sample)
	if len(c.Listening)+len(c.Ends) == 0 && len(result.Listening) > 0 { // the first that listen
		signals := new(proc.Processes).Signals(1)
		// It may wait for what it blocks.
		c.Deaf = w.sampler.PID1Serves() && !(signals.Caught | signals.Blocked).Has(sig.TERM)
	}
	w.sampler.TimeWait = result.NeedsTimeWait
	w.sampler.Interval = watchInterval
	if len(result.Ends) > 0 {
		w.sampler.Interval = endedInterval
	}
	w.sampler.Continue(false)
	return result
}

// outlook says what TERM begins.
func (w *watch) outlook() string {
	c := &w.cost
	if !c.FromTERM() && len(c.Listening)+c.Open == 0 {
		left := max(c.Traffic.QuietFor-c.Now.Sub(c.Ended()), 0).Round(time.Second / 10)
		return report.InWords("following the stop for another %s, since the server has gone", left)
	}
	source := "given"
	if c.AssumedFrom != "" {
		source = "assumed, as in " + c.AssumedFrom
	}
	return report.InWords("following the stop until every listener has gone and nobody was refused for %s, at most %s "+
		"(grace period of %s, %s); a second TERM or INT ends it", c.Traffic.QuietFor, c.Limit(), c.Stop.Grace, source)
}

// onSample handles a snapshot, and what the ends of ports have cost.
func (w *watch) onSample(next *observe.Snapshot, result cost.Result) {
	c := &w.cost
	c.Now = time.Now()
	if len(result.Returned) > 0 {
		w.conclude() // before what was counted is forgotten
	}
	if !slices.Equal(c.Ends, result.Ends) {
		w.said = saidNothing
	}
	c.Result = result
	c.Source = ""
	if next.Observer != report.SockDiag {
		c.Source = next.Observer
	}
	w.sayNews(next)
	if c.Began().IsZero() {
		w.countMinute(next.Accepted)
	} else {
		w.writeVerdict()
	}
	complete := w.endedAt
	if len(c.Ends) > 0 { // the events of the connections that it has cut
		complete = complete.Add(cost.LateEvent)
	}
	isEnded := !w.endedAt.IsZero() && next.Began.After(complete)
	switch {
	case isEnded || w.isOver():
		w.conclude()
		w.done = isEnded || !c.TERM.IsZero()
	case !w.announced && !c.TERM.IsZero() && next.Began.After(c.TERM):
		w.announced = true
		w.say("TERM: " + w.outlook())
	case w.said == saidNothing && w.hasLost(): // KILL may come before the verdict
		w.said = saidLoss
		w.say("so far: " + c.Lines()[0])
	}
	if !w.onlyStops && !w.done && w.err == nil && !c.Now.Before(w.viewDue) && hasRoom(0) {
		w.viewDue = c.Now.Add(showEvery)
		w.err = w.print(w.view(next))
	}
}

// isOver reports whether nothing more is to be seen: every port has ended, its connections are
// closed, and nobody has been refused for QuietFor; or the limit has passed. TERM after the first end
// says that everybody else has gone and only the watch is waited for: no longer than QuietFor.
func (w *watch) isOver() bool {
	c := &w.cost
	began := c.Began()
	switch {
	case began.IsZero():
		return false
	case c.Now.Sub(began) >= c.Limit():
		return true
	case len(c.Listening)+c.Open > 0:
		return false
	}
	quiet := c.Now.Sub(c.Ended())
	if !c.TERM.After(began) {
		quiet = min(quiet, c.Now.Sub(c.LastRefused))
	}
	return quiet >= c.Traffic.QuietFor
}

// hasLost reports whether the stop has cost anything, once every port has ended, and the events of its
// connections have come.
func (w *watch) hasLost() bool {
	c := &w.cost
	requests, streams := c.Cut()
	hasGone := len(c.Listening)+c.Open == 0 && c.Now.Sub(c.Ended()) >= cost.LateEvent
	return hasGone && requests+streams+c.Refused > 0
}

// sayNews says what has changed about the source of the samples, and about the server.
func (w *watch) sayNews(next *observe.Snapshot) {
	c := &w.cost
	var news []string
	if next.Trouble != "" {
		news = append(news, fmt.Sprintf("observing through %s: %s", next.Observer, next.Trouble))
	}
	switch {
	case c.Deaf:
		news = append(news, report.Deaf)
	case len(c.Listening)+len(c.Ends) == 0:
		news = append(news, "nothing listens in this network namespace; looking on")
	}
	for _, e := range c.Returned {
		news = append(news, fmt.Sprintf("port %d listens again, after %.1f s", e.Port, time.Since(e.At).Seconds()))
	}
	for _, text := range news {
		if !slices.Contains(w.news, text) {
			w.say(text)
		}
	}
	w.news = news
}

// writeVerdict writes the lines about what the stop has cost into the termination log, since KILL may come at
// any time, and returns them.
func (w *watch) writeVerdict() []string {
	lines := w.cost.Lines()
	if w.cost.Plan.JSON {
		lines = []string{w.cost.JSON()}
	}
	_ = w.termlog.Write(lines...)
	return lines
}

// conclude says what the stop has cost, if it has begun, once.
func (w *watch) conclude() {
	if w.said == saidVerdict || w.cost.Began().IsZero() {
		return
	}
	w.said = saidVerdict
	for _, line := range w.writeVerdict() {
		w.line(line)
	}
}

// say says something in the form of the other lines.
func (w *watch) say(text string) {
	if w.cost.Plan.JSON {
		text = report.Line(time.Now(), "info", "watch: "+text, nil, stderr.MaxLine)
	}
	w.line(text)
}

// maxBlocked is how long a line may wait for a reader of standard output.
const maxBlocked = time.Second

// line writes a line, unless standard output is not read.
func (w *watch) line(text string) {
	if !w.cost.Plan.JSON {
		text = "lameduck: watch: " + text
	}
	if w.err == nil && hasRoom(maxBlocked) {
		w.err = w.print(text)
	}
}

// hasRoom reports whether standard output takes a line without blocking, after a while at the
// latest, or fails at once.
func hasRoom(wait time.Duration) bool {
	fds := []unix.PollFd{{Fd: 1, Events: unix.POLLOUT}}
	for {
		n, err := unix.Poll(fds, int(wait.Milliseconds()))
		if err != unix.EINTR {
			return n != 0 // -1: an error
		}
	}
}
