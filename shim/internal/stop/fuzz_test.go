package stop

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// What must be true of every stream of events, under every configuration.

// story is bytes that decide what is configured and what happens. When it is over
// all answers are 0.
type story []byte

func (s *story) below(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := int((*s)[0])
	*s = (*s)[1:]
	return b % n
}

func (s *story) yes() bool { return s.below(2) == 1 }

// times are some that matter: none, within a double, around the waits below.
var times = []time.Duration{0, time.Millisecond, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 9 * time.Second, 30 * time.Second}

func (s *story) time() time.Duration { return times[s.below(len(times))] }

// told are the signals of a story, stop signals among them.
var told = []sig.Signal{sig.TERM, sig.INT, sig.USR1, sig.QUIT, sig.HUP, sig.WINCH, sig.CONT, sig.TSTP}

func (s *story) signal() sig.Signal { return told[s.below(len(told))] }

func (s *story) schedule() (list Schedule) {
	for range 1 + s.below(7) {
		switch s.below(6) {
		case 0, 1:
			list = append(list, Step{Signal: s.signal()})
		case 2:
			list = append(list, Step{Signal: sig.KILL})
		case 3:
			list = append(list, Step{StopSignal: true})
		case 4:
			list = append(list, Step{Forever: true})
		case 5:
			list = append(list, Step{Wait: s.time()})
		}
	}
	return list
}

func (s *story) preset() Preset {
	steps := Schedule{{Signal: s.signal()}}
	if s.yes() {
		steps = append(steps, Step{Wait: 2 * time.Second}, Step{Signal: s.signal()})
	}
	return Preset{StopSignals: sig.SetOf(s.signal()), Steps: steps}
}

// config is one that would not have been refused.
func (s *story) config() Config {
	cfg := Config{StopSignals: sig.SetOf(sig.TERM), Grace: max(s.time(), time.Second), Linger: s.time(), KillAfter: s.time(), HealthListener: s.yes(), JobControl: s.yes(), TermGroup: s.yes(), StopSelfOnTSTP: s.yes()}
	cfg.Gate = Gate{Floor: s.time(), Until: []Reason{"", Settled, Quiet, Drained}[s.below(4)], FloorGiven: s.yes(), CeilingGiven: s.yes(), WaitGone: s.yes(), OnStop: s.yes()}
	cfg.Gate.Ceiling = cfg.Gate.Floor + s.time()
	for range s.below(3) {
		cfg.Rewrites.Add(sig.Rewrite{From: s.signal(), To: []sig.Signal{0, sig.USR1, sig.QUIT, sig.TERM}[s.below(4)]})
	}
	if s.yes() {
		cfg.Preset = s.preset()
	}
	sends := func(step Step) bool { return step.Signal != 0 || step.StopSignal }
	if list := s.schedule(); slices.ContainsFunc(list, sends) && !list.LoopsWithoutWait() && s.yes() {
		cfg.Schedule = list
	}
	cfg.SequenceWithoutHold = cfg.Schedule != nil || cfg.KillAfter > 0 || cfg.Preset.Steps != nil
	return cfg
}

// event is one that a loop might tell of.
func (s *story) event() Event {
	switch s.below(12) {
	case 0, 1, 2, 3:
		return Event{Kind: SignalArrived, Signal: s.signal()}
	case 4:
		return Event{Kind: CommandStopped, Signal: []sig.Signal{sig.TSTP, sig.TTIN, sig.STOP}[s.below(3)]}
	case 5:
		return Event{Kind: CommandContinued}
	case 6:
		return Event{Kind: Sampled, Traffic: TrafficState(s.below(int(ServerGone) + 1)), Waiting: s.yes()}
	case 7:
		return Event{Kind: OnStopEnded}
	case 8:
		return Event{Kind: OrphanReaped}
	case 9:
		if s.below(8) == 0 {
			return Event{Kind: CommandExited, Code: 3}
		}
		return Event{Kind: CommandStarted}
	case 10:
		if s.below(4) == 0 {
			return Event{Kind: NoChildren}
		}
	}
	return Event{Kind: Tick}
}

// witness knows what was done so far, and what must never be.
type witness struct {
	t    *testing.T
	cfg  Config
	m    *Machine
	now  time.Time
	did  map[Verb]int
	sent []sig.Signal // by the sequence
	over bool
}

func newWitness(t *testing.T, cfg Config) *witness {
	return &witness{t: t, cfg: cfg, m: New(cfg), now: epoch, did: map[Verb]int{}}
}

// tells hands on an event, and looks at what is answered; then a tick that comes
// too early must change nothing.
func (w *witness) tells(e Event) {
	w.t.Helper()
	before := w.m.State()
	acts := w.m.Handle(w.now, e)
	for i, a := range acts {
		w.did[a.Verb]++
		switch {
		case w.over:
			w.t.Fatalf("%v after exit", a)
		case before == Starting && w.m.State() == Starting && a.Verb != StopSelf:
			w.t.Fatalf("%v: %v before the start", e, a)
		case a.Verb == Exit && (i != len(acts)-1 || w.m.State() != Gone):
			w.t.Fatalf("%v: %v, and goes on", e, acts)
		case a.Verb == Send && w.sequence():
			w.sent = append(w.sent, a.Signal)
		}
	}
	w.over = w.m.State() == Gone
	if w.over != (w.did[Exit] == 1) {
		w.t.Fatalf("%v: %v, with %d exits", e, w.m.State(), w.did[Exit])
	}
	w.once()
	w.deadlines()
}

func (w *witness) sequence() bool { return !w.m.Record().TriggeredAt.IsZero() }

// once holds what happens once at most, and in the right company.
func (w *witness) once() {
	w.t.Helper()
	for _, v := range []Verb{StartSampling, StopHealth, RunOnStop, ReportStart, ReportLate, ReportEnd, Exit, NoteBeforeStart} {
		if w.did[v] > 1 {
			w.t.Fatalf("%v %d times", Action{Verb: v}, w.did[v])
		}
	}
	r := w.m.Record()
	if w.over && w.sequence() != (w.did[ReportEnd] == 1) || w.did[StartSampling] > 0 != (w.did[ReportStart] > 0 && w.cfg.Gate.Holds()) {
		w.t.Fatalf("did %v; triggered at %v", w.did, r.TriggeredAt)
	}
	if w.did[RunOnStop] > 0 && !w.cfg.Gate.OnStop || w.did[StopHealth] > 0 && !w.cfg.HealthListener {
		w.t.Fatalf("did %v unasked", w.did)
	}
}

// deadlines holds that those there are lie ahead once they were met, that ticks
// before them do nothing, and that nothing lasts longer than it may.
func (w *witness) deadlines() {
	w.t.Helper()
	for met := 0; ; met++ {
		at, due := w.m.Deadline()
		if !due || at.After(w.now) {
			state := w.m.State()
			if acts := w.m.Handle(w.now, Event{Kind: Tick}); acts != nil {
				w.t.Fatalf("an early tick does %v", acts)
			}
			if again, still := w.m.Deadline(); again != at || still != due || w.m.State() != state {
				w.t.Fatalf("an early tick changes %v to %v, %v to %v", at, again, state, w.m.State())
			}
			break
		}
		if met > 20 {
			w.t.Fatalf("the deadline %v is never met", at)
		}
		for _, a := range w.m.Handle(w.now, Event{Kind: Tick}) {
			w.did[a.Verb]++
			if a.Verb == Send {
				w.sent = append(w.sent, a.Signal)
			}
		}
		w.over = w.m.State() == Gone
	}
	r := w.m.Record()
	if w.m.State() == Holding && w.now.Sub(r.TriggeredAt) >= w.cfg.Gate.MaxHold() {
		w.t.Fatalf("it still holds after %v, which is the longest", w.now.Sub(r.TriggeredAt))
	}
	if k := w.cfg.KillAfter; k > 0 && w.m.State() == Stopping && len(r.Sent) > 0 && !w.now.Before(r.Sent[0].At.Add(k)) && !slices.Contains(w.sent, sig.KILL) {
		w.t.Fatalf("no KILL %v after the first signal", k)
	}
	w.follows()
}

// follows holds that what was sent is what the schedule says, in its order and no
// more often, KILL excepted that --kill-after names: that is sent once, in its time,
// and is the last.
func (w *witness) follows() {
	w.t.Helper()
	if !w.sequence() {
		return
	}
	said := w.m.Record().Steps.unrolled(len(w.sent))
	n := 0
	for n < len(w.sent) && n < len(said) && w.sent[n] == said[n] {
		n++
	}
	rest := w.sent[n:]
	if len(rest) == 0 || len(rest) == 1 && rest[0] == sig.KILL && w.cfg.KillAfter > 0 {
		return
	}
	w.t.Fatalf("sent %v by %v", w.sent, w.m.Record().Steps)
}

// unrolled is the first n signals of a schedule.
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

// play plays a story to its end, and then lets the command exit and time pass: that
// ends it.
func play(t *testing.T, s story) {
	cfg := s.config()
	w := newWitness(t, cfg)
	first := Event{Kind: CommandStarted}
	if s.below(10) == 0 {
		first = Event{Kind: SignalArrived, Signal: s.signal()}
	}
	w.tells(first)
	for len(s) > 0 && !w.over {
		if s.below(20) == 0 {
			w.m.UsePreset(s.preset())
			continue
		}
		steps := w.m.Record().Steps
		stopping := w.m.State() == Stopping
		w.tells(s.event())
		if stopping && !slices.Equal(steps, w.m.Record().Steps) {
			t.Fatalf("in the middle of a stop %v became %v", steps, w.m.Record().Steps)
		}
		if at, due := w.m.Deadline(); due && s.yes() {
			w.now = at.Add(s.time() * time.Duration(s.below(2))) // in time, or late
		} else {
			w.now = w.now.Add(s.time())
		}
		if !w.over {
			w.deadlines()
		}
	}
	if w.over {
		return
	}
	w.tells(Event{Kind: CommandStarted})
	w.tells(Event{Kind: CommandExited, Code: 3})
	w.now = w.now.Add(cfg.Linger)
	if !w.over {
		w.tells(Event{Kind: Tick})
	}
	if !w.over {
		t.Fatalf("the command has exited, and nothing lingers: %v", w.m.State())
	}
	for _, h := range happenings {
		w.tells(h.event)
	}
}

// FuzzMachine plays stories that nobody has thought of.
func FuzzMachine(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(random(seed))
	}
	f.Fuzz(func(t *testing.T, bytes []byte) { play(t, bytes) })
}

// random is a story of some length.
func random(seed uint64) []byte {
	rnd := rand.New(rand.NewPCG(seed, 1))
	bytes := make([]byte, 40+rnd.IntN(200))
	for i := range bytes {
		bytes[i] = byte(rnd.IntN(256))
	}
	return bytes
}

// TestAnyOrder plays as many stories as there is time for.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(6000) {
		if play(t, random(seed)); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
