package watch

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/cost"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/stderr"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/termlog"
)

// showEvery is the time between two views.
const showEvery = time.Second

// known is how long before the first view bytes count. The kernel knows the age of the last
// byte of a connection: an idle server is quiet from the first view on.
const known = time.Hour

// doubledTERM is the time after a TERM in which another is the same one.
const doubledTERM = time.Second

// Watcher is where Run shows what it sees. Both functions get whole lines, and an error of
// either ends Run.
type Watcher struct {
	View func(string) error // the traffic once a second, unless standard output is not read; nil: never
	Say  func(string) error // what has happened, and what a stop has cost
}

// Run watches until a signal ends it.
func Run(p *plan.Plan, to Watcher, log *termlog.Writer) error {
	w := newWatch(p, to, log, time.Now())
	samples := make(chan sample, 1)
	go newSampler(p, w.start, samples).run()
	return w.run(samples)
}

// run handles samples and signals. A fault of lameduck's own is an error, after what is known.
func (w *watch) run(samples chan sample) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("a fault of lameduck's own, %v; please report it", fault)
			defer func() { recover() }()
			w.conclude(time.Now())
		}
	}()
	for !w.done && w.err == nil {
		select {
		case next := <-samples:
			if next.fault != nil {
				panic(next.fault)
			}
			w.sampled(&next)
		default: // a sample wakes Next, too
			w.signaled(sigcatch.Next(time.Time{}, [2]int{}))
		}
	}
	return w.err
}

// watch is what Run knows.
type watch struct {
	Watcher
	plan    *plan.Plan
	termlog *termlog.Writer
	start   time.Time // of what counts
	givesUp time.Time // when requests may first be given up
	viewDue time.Time
	viewed  int // connections, as of the last view

	cost      report.Cost
	announced bool     // what TERM begins, as was said
	written   []string // the verdict in the termination log, in words
	said      bool     // the verdict on the ends so far
	saidLoss  bool     // what they had cost at once
	news      [3]string
	minute    []count   // of the samples of a minute, up to the beginning of the stop
	endedAt   time.Time // when a signal ended watch
	done      bool
	err       error // of the first line that could not be written
}

// count is the number of connections up to a moment.
type count struct {
	at       time.Time
	accepted int
}

// countMinute counts the connections of the last minute, until the stop begins.
func (w *watch) countMinute(now time.Time, accepted int) {
	if !w.cost.Began().IsZero() {
		return
	}
	w.minute = append(w.minute, count{now, accepted})
	for now.Sub(w.minute[0].at) > time.Minute {
		w.minute = w.minute[1:]
	}
	w.cost.Accepted = accepted - w.minute[0].accepted
}

func newWatch(p *plan.Plan, to Watcher, log *termlog.Writer, now time.Time) *watch {
	w := &watch{
		Watcher: to, plan: p, termlog: log,
		start: now.Add(-known), givesUp: now.Add(p.Traffic.MaxSilence), viewDue: now.Add(showEvery),
	}
	w.cost = report.Cost{Grace: p.Stop.Grace, GraceAssumed: p.Terms.GraceAssumed}
	w.cost.Limit = p.Stop.Grace - stop.ReportMargin
	w.cost.QuietFor = p.Traffic.QuietFor
	w.cost.Ceiling = p.Stop.Gate.Ceiling
	return w
}

// signaled handles a signal, or 0. What has happened since the latest sample is in the next one.
func (w *watch) signaled(signal sig.Signal) {
	now := time.Now()
	switch isTERM := signal == sig.TERM; {
	case isTERM && w.cost.TERM.IsZero():
		w.cost.TERM = now
	case isTERM && now.Sub(w.cost.TERM) < doubledTERM:
	case !isTERM && signal != sig.INT && signal != sig.HUP && signal != sig.QUIT:
	case w.endedAt.IsZero():
		w.endedAt = now
	default:
		w.done = true
		w.conclude(now)
	}
}

// outlook says what TERM begins.
func (w *watch) outlook(now time.Time) string {
	c := &w.cost
	if !c.FromTERM() && len(c.Listening)+c.Open == 0 {
		left := max(c.QuietFor-now.Sub(c.Ended()), 0).Round(time.Second / 10)
		return report.InWords("following the stop for another %s, since the server has gone", left)
	}
	source := "given"
	if c.GraceAssumed {
		source = "assumed, as in " + w.plan.Terms.AssumedFrom
	}
	return report.InWords("following the stop until every listener has gone and nobody was refused for %s, at most %s "+
		"(grace period of %s, %s); a second TERM or INT ends it", c.QuietFor, c.Limit, c.Grace, source)
}

// sampled handles a snapshot.
func (w *watch) sampled(next *sample) {
	now := time.Now()
	c := &w.cost
	hasReturned := len(next.cost.Returned) > 0
	if hasReturned {
		w.conclude(now) // before what was counted is forgotten
	}
	if hasReturned || len(c.Ends) < len(next.cost.Ends) {
		w.said, w.saidLoss = false, false
	}
	c.Result, c.Streams, c.Deaf = next.cost, next.Streams, next.deaf
	w.countMinute(now, next.Accepted)
	c.Source = ""
	if next.observer != observe.SockDiag {
		c.Source = next.observer
	}
	late := time.Duration(0)
	if len(c.Ends) > 0 { // the events of the connections that it has cut
		late = cost.LateEvent
	} else {
		c.LastNew, c.LastByte, c.LastUse, c.InUse = next.LastOther, next.LastByte, next.LastUse, next.InUse
	}
	w.sayNews(next)
	w.writeTermlog(now, false)
	isEnded := !w.endedAt.IsZero() && next.began.After(w.endedAt.Add(late))
	switch isOver := c.Over(now); {
	case isEnded || isOver:
		w.conclude(now)
		w.done = isEnded || !c.TERM.IsZero()
	case !w.announced && !c.TERM.IsZero() && next.began.After(c.TERM):
		w.announced = true
		w.say("TERM: %s", w.outlook(now))
	case !w.saidLoss && !w.said && c.Lost() && c.Gone(now): // KILL may come before the verdict
		w.saidLoss = true
		w.say("so far: %s", c.Lines()[0])
	}
	if w.View != nil && !w.done && w.err == nil && !now.Before(w.viewDue) && hasRoom(0) {
		w.viewDue = now.Add(showEvery)
		w.err = w.View(w.view(now, next))
	}
}

// sayNews says what has changed about the source of the samples, and about the server.
func (w *watch) sayNews(next *sample) {
	var news [len(w.news)]string
	if next.trouble != "" {
		news[0] = fmt.Sprintf("observing through %s: %s", next.observer, next.trouble)
	}
	if next.deaf {
		news[1] = report.Deaf
	}
	if len(next.cost.Listening)+len(next.cost.Ends) == 0 {
		news[2] = "nothing listens in this network namespace; looking on"
	}
	for i, text := range news {
		if text != "" && text != w.news[i] {
			w.say("%s", text)
		}
	}
	w.news = news
	for _, e := range next.cost.Returned {
		w.say("port %d listens again, after %.1f s", e.Port, time.Since(e.At).Seconds())
	}
}

// writeTermlog keeps the termination log up to date from the beginning of the stop on: KILL may
// come at any time. As long as the server serves, only the time changes, which can wait.
func (w *watch) writeTermlog(now time.Time, isLast bool) {
	if w.cost.Began().IsZero() {
		return
	}
	w.cost.Now = now
	text := w.cost.Lines()
	if w.written == nil || !slices.Equal(text, w.written) && (isLast || len(w.cost.Ends) > 0) {
		w.written = text
		_ = w.termlog.Write(w.verdict("")...)
	}
}

// verdict returns the lines about what the stop has cost.
func (w *watch) verdict(prefix string) (lines []string) {
	if w.plan.JSON {
		return []string{w.cost.JSON()}
	}
	for _, line := range w.cost.Lines() {
		lines = append(lines, prefix+line)
	}
	return lines
}

const watchPrefix = "lameduck: watch: "

// conclude says what the stop has cost, if it has begun, once.
func (w *watch) conclude(now time.Time) {
	if w.said || w.cost.Began().IsZero() {
		return
	}
	w.said = true
	w.writeTermlog(now, true)
	for _, line := range w.verdict(watchPrefix) {
		w.line(line)
	}
}

// say says something in the form of the other lines.
func (w *watch) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if w.plan.JSON {
		w.line(report.Line(time.Now(), "info", "watch: "+text, nil, stderr.MaxLine))
		return
	}
	w.line(watchPrefix + text)
}

// maxBlocked is how long a line may wait for a reader of standard output.
const maxBlocked = time.Second

// line writes a line, unless standard output is not read.
func (w *watch) line(text string) {
	if w.err == nil && hasRoom(maxBlocked) {
		w.err = w.Say(text)
	}
}

// hasRoom reports whether standard output takes a line without blocking, after a while at the
// latest, or fails at once.
func hasRoom(wait time.Duration) bool {
	fds := []unix.PollFd{{Fd: 1, Events: unix.POLLOUT}}
	for {
		n, err := unix.Poll(fds, int(wait.Milliseconds()))
		if err != unix.EINTR {
			return n != 0 || err != nil
		}
	}
}
