package stop

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// The invariants of the machine: any stream of events, under any configuration.

// fuzzInput is bytes that decide the configuration and the events. Every answer after
// the last byte is 0.
type fuzzInput []byte

func (in *fuzzInput) intn(n int) int {
	if len(*in) == 0 {
		return 0
	}
	b := int((*in)[0])
	*in = (*in)[1:]
	return b % n
}

func (in *fuzzInput) bool() bool { return in.intn(2) == 1 }

// durations has zero, values around dedupWindow, and values around the waits below.
var durations = []time.Duration{0, time.Millisecond, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 9 * time.Second, 30 * time.Second}

func (in *fuzzInput) duration() time.Duration { return durations[in.intn(len(durations))] }

// signals has stop signals and others.
var signals = []sig.Signal{sig.TERM, sig.INT, sig.USR1, sig.QUIT, sig.HUP, sig.WINCH, sig.CONT, sig.TSTP}

func (in *fuzzInput) signal() sig.Signal { return signals[in.intn(len(signals))] }

func (in *fuzzInput) schedule() (list Schedule) {
	for range 1 + in.intn(7) {
		switch in.intn(6) {
		case 0, 1:
			list = append(list, Step{Signal: in.signal()})
		case 2:
			list = append(list, Step{Signal: sig.KILL})
		case 3:
			list = append(list, Step{StopSignal: true})
		case 4:
			list = append(list, Step{Forever: true})
		case 5:
			list = append(list, Step{Wait: in.duration()})
		}
	}
	return list
}

func (in *fuzzInput) preset() Schedule {
	steps := Schedule{{Signal: in.signal()}}
	if in.bool() {
		steps = append(steps, Step{Wait: 2 * time.Second}, Step{Signal: in.signal()})
	}
	return steps
}

// config returns a valid configuration.
func (in *fuzzInput) config() Config {
	cfg := Config{StopSignals: sig.SetOf(sig.TERM), Grace: max(in.duration(), time.Second), Linger: in.duration(), KillAfter: in.duration(),
		HealthListener: in.bool(), JobControl: in.bool(), TermGroup: in.bool(), StopSelfOnTSTP: in.bool()}
	cfg.Gate = Gate{Floor: in.duration(), Until: []Reason{"", Settled, Quiet, Drained}[in.intn(4)], WaitGone: in.bool(), OnStop: in.bool()}
	cfg.Gate.UnseenFloor = cfg.Gate.Floor + in.duration()
	cfg.Gate.Ceiling = cfg.Gate.Floor + in.duration()
	for range in.intn(3) {
		cfg.Rewrites.Add(sig.Rewrite{From: in.signal(), To: []sig.Signal{0, sig.USR1, sig.QUIT, sig.TERM}[in.intn(4)]})
	}
	if in.bool() {
		cfg.Preset = in.preset()
		cfg.StopSignals = cfg.StopSignals.With(in.signal())
	}
	list := in.schedule()
	if slices.ContainsFunc(list, Step.isSignal) && !list.LoopsWithoutWait() && in.bool() {
		cfg.Schedule = list
	}
	cfg.SequenceWithoutHold = cfg.Schedule != nil || cfg.KillAfter > 0 || cfg.Preset != nil
	return cfg
}

func (in *fuzzInput) requests() Requests {
	return Requests{Active: in.bool(), AtRisk: max(in.intn(100)-50, 0), Stale: in.intn(4) == 0}
}

func (in *fuzzInput) event() Event {
	switch in.intn(12) {
	case 0, 1, 2, 3:
		return Event{Kind: SignalArrived, Signal: in.signal()}
	case 4:
		return Event{Kind: CommandStopped, Signal: []sig.Signal{sig.TSTP, sig.TTIN, sig.STOP}[in.intn(3)]}
	case 5:
		return Event{Kind: CommandContinued}
	case 6:
		return Event{Kind: Sampled, Traffic: TrafficState(in.intn(int(OnlyKept) + 1)), Waiting: in.bool(), Requests: in.requests()}
	case 7:
		return Event{Kind: OnStopEnded}
	case 8:
		return Event{Kind: OrphanReaped}
	case 9:
		if in.intn(8) == 0 {
			return Event{Kind: CommandExited, Code: 3}
		}
		return Event{Kind: CommandStarted}
	case 10:
		if in.intn(4) == 0 {
			return Event{Kind: NoChildren}
		}
	}
	return Event{Kind: Tick}
}

// checker plays events on a machine and checks the invariants after each.
type checker struct {
	t    *testing.T
	cfg  Config
	m    *Machine
	now  time.Time
	did  map[Verb]int
	sent []sig.Signal // by the sequence
	over bool

	onStopRuns bool
}

func newChecker(t *testing.T, cfg Config) *checker {
	return &checker{t: t, cfg: cfg, m: New(cfg), now: epoch, did: map[Verb]int{}}
}

// handle plays an event and checks the answer.
func (c *checker) handle(e Event) {
	c.t.Helper()
	before := c.m.State()
	c.onStopRuns = c.onStopRuns && e.Kind != OnStopEnded
	acts := c.m.Handle(c.now, e)
	for i, a := range acts {
		c.note(a)
		switch {
		case c.over:
			c.t.Fatalf("%v after exit", a)
		case before == Starting && c.m.State() == Starting && a.Verb != StopSelf:
			c.t.Fatalf("%v: %v before the start", e, a)
		case a.Verb == Exit && (i != len(acts)-1 || c.m.State() != Gone):
			c.t.Fatalf("%v: %v, not at the end of the sequence", e, acts)
		}
	}
	c.over = c.m.State() == Gone
	if c.over != (c.did[Exit] == 1) {
		c.t.Fatalf("%v: %v, with %d exits", e, c.m.State(), c.did[Exit])
	}
	c.checkCounts()
	c.checkDeadlines()
}

// note counts an action, and checks that it finds its process alive.
func (c *checker) note(a Action) {
	c.t.Helper()
	c.did[a.Verb]++
	switch {
	case a.Verb == Send && !c.m.Record().ExitedAt.IsZero():
		c.t.Fatalf("%v after the command's exit", a)
	case a.Verb == KillOnStop && !c.onStopRuns:
		c.t.Fatalf("%v, which does not run", a)
	case a.Verb == RunOnStop || a.Verb == KillOnStop:
		c.onStopRuns = a.Verb == RunOnStop
	case a.Verb == Send && c.inSequence():
		c.sent = append(c.sent, a.Signal)
	}
}

func (c *checker) inSequence() bool { return !c.m.Record().TriggeredAt.IsZero() }

// checkCounts checks that actions of one sequence are not repeated, and that an
// action comes only with the configuration for the action.
func (c *checker) checkCounts() {
	c.t.Helper()
	for _, v := range []Verb{StartSampling, StopHealth, RunOnStop, ReportStart, ReportLate, ReportEnd, Exit, NoteBeforeStart} {
		if c.did[v] > 1 {
			c.t.Fatalf("%v %d times", Action{Verb: v}, c.did[v])
		}
	}
	r := c.m.Record()
	if c.over && c.inSequence() != (c.did[ReportEnd] == 1) || c.did[StartSampling] > 0 != (c.did[ReportStart] > 0 && c.cfg.Gate.Holds()) {
		c.t.Fatalf("actions %v; triggered at %v", c.did, r.TriggeredAt)
	}
	if c.did[RunOnStop] > 0 && !c.cfg.Gate.OnStop || c.did[StopHealth] > 0 && !c.cfg.HealthListener {
		c.t.Fatalf("actions %v are not configured", c.did)
	}
}

// checkDeadlines plays a Tick for every deadline up to now, and checks that the last
// deadline is in the future, that an early Tick does nothing, and that neither the
// hold nor --kill-after is late.
func (c *checker) checkDeadlines() {
	c.t.Helper()
	ticks := 0
	at, due := c.m.Deadline()
	for ; due && !at.After(c.now); at, due = c.m.Deadline() {
		ticks++
		if ticks > 20 {
			c.t.Fatalf("deadline %v stays after %d ticks", at, ticks)
		}
		for _, a := range c.m.Handle(c.now, Event{Kind: Tick}) {
			c.note(a)
		}
		c.over = c.m.State() == Gone
	}
	c.checkEarlyTick()
	r := c.m.Record()
	longest := c.cfg.Gate.MaxHold()
	if c.m.Searching() && !c.cfg.Gate.Conditional() {
		longest = min(longest+time.Second/2, c.cfg.Gate.Ceiling)
	}
	if held := c.now.Sub(r.TriggeredAt); c.m.State() == Holding && held >= longest {
		c.t.Fatalf("holding for %v, longer than %v", held, longest)
	}
	if k := c.cfg.KillAfter; k > 0 && c.m.State() == Stopping && len(r.Sent) > 0 && !c.now.Before(r.Sent[0].At.Add(k)) && !slices.Contains(c.sent, sig.KILL) {
		c.t.Fatalf("no KILL %v after the first signal", k)
	}
	c.checkSent()
}

func (c *checker) checkEarlyTick() {
	c.t.Helper()
	state := c.m.State()
	at, due := c.m.Deadline()
	if acts := c.m.Handle(c.now, Event{Kind: Tick}); acts != nil {
		c.t.Fatalf("actions of an early tick: %v", acts)
	}
	if again, still := c.m.Deadline(); again != at || still != due || c.m.State() != state {
		c.t.Fatalf("an early tick changes %v to %v, %v to %v", at, again, state, c.m.State())
	}
}

// checkSent checks that the signals sent are a prefix of the schedule. KILL of
// --kill-after may follow as the last signal.
func (c *checker) checkSent() {
	c.t.Helper()
	if !c.inSequence() {
		return
	}
	want := c.m.Record().Steps.unrolled(len(c.sent))
	n := 0
	for n < len(c.sent) && n < len(want) && c.sent[n] == want[n] {
		n++
	}
	rest := c.sent[n:]
	if len(rest) == 0 || len(rest) == 1 && rest[0] == sig.KILL && c.cfg.KillAfter > 0 {
		return
	}
	c.t.Fatalf("sent %v by schedule %v", c.sent, c.m.Record().Steps)
}

// unrolled returns the first n signals of a schedule.
func (s Schedule) unrolled(n int) (list []sig.Signal) {
	repeat := -1
	for i, steps := 0, 0; len(list) < n && steps < (n+1)*(len(s)+1); i, steps = i+1, steps+1 {
		if i == len(s) && repeat < 0 {
			return list
		}
		if i == len(s) {
			i = repeat
		}
		switch step := s[i]; {
		case step.Forever && i == len(s)-1:
			return list
		case step.Forever:
			repeat = i + 1
		case step.Signal != 0:
			list = append(list, step.Signal)
		}
	}
	return list
}

// play plays the input. At its end the command exits and the linger time passes, which
// must end the sequence.
func play(t *testing.T, in fuzzInput) {
	cfg := in.config()
	c := newChecker(t, cfg)
	first := Event{Kind: CommandStarted}
	if in.intn(10) == 0 {
		first = Event{Kind: SignalArrived, Signal: in.signal()}
	}
	c.handle(first)
	for len(in) > 0 && !c.over {
		c.playNext(&in)
	}
	if c.over {
		return
	}
	c.handle(Event{Kind: CommandStarted})
	c.handle(Event{Kind: CommandExited, Code: 3})
	c.now = c.now.Add(cfg.Linger)
	if !c.over {
		c.handle(Event{Kind: Tick})
	}
	if !c.over {
		t.Fatalf("%v after the exit and the linger time", c.m.State())
	}
	for _, row := range tableEvents {
		c.handle(row.event)
	}
}

// playNext plays one event, or sets a preset, and lets time pass.
func (c *checker) playNext(in *fuzzInput) {
	c.t.Helper()
	if in.intn(20) == 0 {
		cfg := c.cfg
		cfg.Preset = in.preset()
		cfg.StopSignals = cfg.StopSignals.With(in.signal())
		c.m.Replan(cfg)
		return
	}
	steps := c.m.Record().Steps
	stopping := c.m.State() == Stopping
	c.handle(in.event())
	if stopping && !slices.Equal(steps, c.m.Record().Steps) {
		c.t.Fatalf("schedule %v became %v while stopping", steps, c.m.Record().Steps)
	}
	if at, due := c.m.Deadline(); due && in.bool() {
		c.now = at.Add(in.duration() * time.Duration(in.intn(2))) // in time, or late
	} else {
		c.now = c.now.Add(in.duration())
	}
	if !c.over {
		c.checkDeadlines()
	}
}

func FuzzMachine(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomInput(seed))
	}
	f.Fuzz(func(t *testing.T, bytes []byte) { play(t, bytes) })
}

func randomInput(seed uint64) []byte {
	rnd := rand.New(rand.NewPCG(seed, 1))
	bytes := make([]byte, 40+rnd.IntN(200))
	for i := range bytes {
		bytes[i] = byte(rnd.IntN(256))
	}
	return bytes
}

// TestAnyOrder checks the invariants on 6000 random inputs.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(6000) {
		play(t, randomInput(seed))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
