//go:build linux

package shim

import (
	"errors"
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
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/termlog"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// View is the traffic of the network namespace now. The JSON names are promises, like the names
// in the report. Durations in JSON are milliseconds.
type View struct {
	Schema   int       `json:"schema"`
	Time     time.Time `json:"time"`
	Observer *string   `json:"observer"`          // "none": nothing can be observed; null: nothing listens
	Trouble  string    `json:"trouble,omitempty"` // why Observer is not the best observer
	Ports    []uint16  `json:"ports"`             // that listen
	Open     int       `json:"open"`
	InFlight int       `json:"in_flight"`
	New      int       `json:"new"`              // connections since the last view
	Accepted int       `json:"accepted"`         // connections since the first view
	LastNew  *int64    `json:"last_new_ago_ms"`  // null: none since the first view
	LastByte *int64    `json:"last_byte_ago_ms"` // on a connection that the views have shown; null: none
	Settled  bool      `json:"settled"`
	Quiet    bool      `json:"quiet"`
	Drained  bool      `json:"drained"`
	Cut      *int      `json:"cut"`     // requests, by the server's end so far; null: not ended, or not known
	Refused  *int      `json:"refused"` // connections since the server's end; null as Cut
	Queued   bool      `json:"-"`       // only connections that wait to be accepted keep the server busy
}

// JSON returns the view as one line of JSON.
func (v View) JSON() string { return report.Encode(v) }

// showEvery is the time between two views.
const showEvery = time.Second

// known is how long before the first view bytes count. The kernel knows the age of the last
// byte of a connection: an idle server is quiet from the first view on.
const known = time.Hour

// doubledTERM is the time after a TERM in which another is the same one.
const doubledTERM = time.Second

// Watcher is where Watch shows what it sees. Both functions get whole lines, and an error of
// either ends Watch.
type Watcher struct {
	View func(View) error   // once a second, unless standard output is not read; nil: never
	Say  func(string) error // what has happened, and what a stop has cost
}

// Watch follows every listener of the network namespace, whoever it belongs to, and shows the
// traffic once a second. TERM says that a stop begins, which others carry out. When every
// listener has gone, and for QuietFor nobody was refused, and a second before the end of the
// grace period at the latest, Watch says what the stop has cost, and returns if TERM has come.
// INT, HUP, QUIT, and a second TERM, end Watch after one more sample, or half a second where a
// listener has gone, and twice at once.
func Watch(cfg Config, w Watcher) error {
	proc.HideGoEnv()
	p, err := newPlan(&cfg, plan.Place{})
	if err != nil {
		return err
	}
	if err := new(proc.Processes).Reserve(); err != nil {
		return err
	}
	s := newWatch(p, w, time.Now())
	if err := termlogError(p, s.termlog.Write()); err != nil {
		return err
	}
	defer s.termlog.Flush()
	sampling := observeConfig(p)
	sampling.Start = s.start
	sampling.Watch = true
	snapshots := make(chan observe.Snapshot, 1)
	sampler := observe.Start(sampling, snapshots)
	for !s.done {
		select {
		case snapshot := <-snapshots:
			err = s.sampled(&snapshot)
			sampler.Continue(false)
		default:
		}
		if err == nil {
			err = s.signaled(sigcatch.Next(time.Time{}, [2]int{})) // waits for the next snapshot, too
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watch is what Watch knows.
type watch struct {
	Watcher
	plan    *plan.Plan
	termlog *termlog.Writer
	start   time.Time // of what counts
	givesUp time.Time // when requests may first be given up
	viewDue time.Time

	cost     report.Cost
	written  []string  // the verdict in the termination log, in words
	said     bool      // the verdict on the ends so far
	idle     bool      // nothing listens, as was said
	trouble  string    // of the observer, as was said
	accepted int       // connections, as of the last view
	endedAt  time.Time // when a signal ended watch
	done     bool
}

func newWatch(p *plan.Plan, w Watcher, now time.Time) *watch {
	s := &watch{Watcher: w, plan: p, termlog: termlog.New(p.TerminationLog), start: now.Add(-known)}
	s.givesUp = now.Add(p.Traffic.MaxSilence)
	s.viewDue = now.Add(showEvery)
	s.cost = report.Cost{Grace: p.Stop.Grace, GraceAssumed: p.Terms.GraceAssumed}
	s.cost.Limit = p.Stop.Grace - stop.ReportMargin
	s.cost.QuietFor = p.Traffic.QuietFor
	s.cost.Ceiling = p.Stop.Gate.Ceiling
	return s
}

// signaled handles a signal, or 0.
func (s *watch) signaled(signal sig.Signal) error {
	now := time.Now()
	switch signal {
	case sig.TERM:
		if s.cost.TERM.IsZero() {
			s.cost.TERM = now
			return s.say("TERM: %s", s.outlook())
		}
		if now.Sub(s.cost.TERM) < doubledTERM {
			return nil
		}
	case sig.INT, sig.HUP, sig.QUIT:
	default:
		return nil
	}
	if s.endedAt.IsZero() { // what has happened since the latest sample is in the next one
		s.endedAt = now
		return nil
	}
	s.done = true
	return s.conclude(now)
}

// outlook says what TERM begins.
func (s *watch) outlook() string {
	source := "given"
	if s.cost.GraceAssumed {
		source = "assumed, as in " + s.plan.Terms.AssumedFrom
	}
	return stop.InWords("following the stop until every listener has gone and nobody was refused for %s, at most %s "+
		"(grace period of %s, %s); a second TERM or INT ends it", s.cost.QuietFor, s.cost.Limit, s.cost.Grace, source)
}

// sampled handles a snapshot.
func (s *watch) sampled(next *observe.Snapshot) error {
	now := time.Now()
	c := &s.cost
	returned := next.Cost.Returned
	if len(returned) > 0 {
		if err := s.conclude(now); err != nil { // before what was counted is forgotten
			return err
		}
		s.said = false
	}
	if len(c.Ends) < len(next.Cost.Ends) {
		s.said = false
	}
	c.Result = next.Cost
	c.Source = ""
	if next.Observer != observe.SockDiag && next.Observer != "" {
		c.Source = next.Observer
	}
	if len(c.Ends) == 0 {
		c.LastNew, c.LastByte, c.InUse = next.LastOther, next.LastByte, next.InUse
	}
	if len(c.Ends) == 0 || c.Open > 0 { // else as they were before
		c.Streams = next.Streams
	}
	err := s.sayNews(next)
	for _, e := range returned {
		err = errors.Join(err, s.say("port %d listens again, after %.1f s", e.Port, now.Sub(e.At).Seconds()))
	}
	s.writeTermlog(now, false)
	late := time.Duration(0)
	if len(c.Ends) > 0 { // the events of the connections that it has cut
		late = cost.LateEvent
	}
	isEnded := !s.endedAt.IsZero() && next.Began.After(s.endedAt.Add(late))
	if isEnded || c.Over(now) {
		err = errors.Join(err, s.conclude(now))
		s.done = isEnded || !c.TERM.IsZero()
	}
	if s.View != nil && !s.done && err == nil && !now.Before(s.viewDue) && hasRoom(0) {
		s.viewDue = now.Add(showEvery)
		err = s.View(s.view(now, next))
	}
	return err
}

// sayNews says what has changed about the source of the samples.
func (s *watch) sayNews(next *observe.Snapshot) (err error) {
	if next.Trouble != s.trouble && next.Trouble != "" {
		err = s.say("observing through %s: %s", next.Observer, next.Trouble)
	}
	s.trouble = next.Trouble
	isIdle := len(next.Cost.Listening)+len(next.Cost.Ends) == 0
	if isIdle && !s.idle {
		err = errors.Join(err, s.say("nothing listens in this network namespace; looking on"))
	}
	s.idle = isIdle
	return err
}

// writeTermlog keeps the termination log up to date from the beginning of the stop on: KILL may
// come at any time. As long as the server serves, only the time changes, which can wait.
func (s *watch) writeTermlog(now time.Time, isLast bool) {
	if s.cost.Began().IsZero() {
		return
	}
	s.cost.Now = now
	text := s.cost.Lines()
	if s.written == nil || !slices.Equal(text, s.written) && (isLast || len(s.cost.Ends) > 0) {
		s.written = text
		s.termlog.Write(s.verdict("")...)
	}
}

// verdict returns the lines about what the stop has cost.
func (s *watch) verdict(prefix string) (lines []string) {
	if s.plan.JSON {
		return []string{s.cost.JSON()}
	}
	for _, line := range s.cost.Lines() {
		lines = append(lines, prefix+line)
	}
	return lines
}

const watchPrefix = "lameduck: watch: "

// conclude says what the stop has cost, if it has begun, once.
func (s *watch) conclude(now time.Time) (err error) {
	if s.said || s.cost.Began().IsZero() {
		return nil
	}
	s.said = true
	s.writeTermlog(now, true)
	for _, line := range s.verdict(watchPrefix) {
		err = errors.Join(err, s.line(line))
	}
	return err
}

// say says something in the form of the other lines.
func (s *watch) say(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if s.plan.JSON {
		return s.line(jsonLine(Info, "watch: "+text, nil))
	}
	return s.line(watchPrefix + text)
}

// maxBlocked is how long a line may wait for a reader of standard output.
const maxBlocked = time.Second

// line writes a line, unless standard output is not read.
func (s *watch) line(text string) error {
	if !hasRoom(maxBlocked) {
		return nil
	}
	return s.Say(text)
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

// view returns next as a View, and records the values to which the next view refers. Requests
// that the tracker has given up are in flight for a hold, which counts the silence of a request
// from its own start.
func (s *watch) view(now time.Time, next *observe.Snapshot) View {
	givenUp := 0
	if now.Before(s.givesUp) {
		givenUp = next.LeftOut.GivenUp
	}
	v := View{
		Schema:   report.Schema,
		Time:     now,
		Observer: report.NullIfZero(next.Observer),
		Trouble:  next.Trouble,
		Ports:    atMost(next.Cost.Listening),
		Open:     next.Open,
		InFlight: next.InFlight + givenUp,
		New:      next.Accepted - s.accepted,
		Accepted: next.Accepted,
		LastNew:  s.ago(now, next.LastNew),
		LastByte: s.ago(now, next.LastByte),
		Settled:  next.Settled,
		Quiet:    next.Quiet && givenUp == 0,
		Drained:  next.Drained,
		Queued:   next.Cause.Kind == traffic.AcceptQueue,
	}
	if c := &s.cost; len(c.Ends) > 0 {
		if c.Source == "" {
			v.Cut = new(c.Cut())
		}
		if c.Uncounted == nil {
			v.Refused = &next.Cost.Refused
		}
	}
	s.accepted = next.Accepted
	return v
}

// ago returns the milliseconds from at to now, nil if at is not after the start.
func (s *watch) ago(now, at time.Time) *int64 {
	if !at.After(s.start) {
		return nil
	}
	return new(now.Sub(at).Milliseconds())
}

// maxShown is how many ports a view lists. A view then fits into a pipe at once: POLLOUT
// promises room for a page at most.
const maxShown = 20

// atMost returns the first maxShown of a list, never nil.
func atMost[T any](list []T) []T { return append([]T{}, list[:min(len(list), maxShown)]...) }
