package stop_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

// The invariants of the machine: any stream of events, under any configuration.

// choices are of flags, of which a configuration has one from each line or none.
var choices = strings.Split(`--delay=500ms --delay=2s --delay=9s
--until=settled --until=quiet --until=drained
--max-delay=10s --max-delay=12s
--wait-gone=/x --wait-url=http://localhost:1/
--on-stop=x --on-stop=USR1 --on-stop=USR2
--linger=0s --linger=1s --linger=5s
--kill-after=1s --kill-after=30s
--stop-schedule=USR1/1s/TERM --stop-schedule=2s --stop-schedule=1s/HUP/forever/TERM/INT/2s --stop-schedule=QUIT/0s/KILL/1s/KILL
--rewrite=TERM:INT --rewrite=TERM:USR1 --rewrite=TERM:0
--rewrite=INT:TERM --rewrite=HUP:0 --rewrite=QUIT:USR1
--preset=nginx --preset=postgres --preset=auto --preset=auto
--stop-signal=INT
--health=:1
--grace-period=60s
dumb-init`, "\n")

// events are in words, the more frequent ones repeatedly; after follows the time until the next.
var events = strings.Split("tick,tick,TERM,TERM,INT,QUIT,HUP,CONT,TSTP,stopped TSTP,stopped STOP,continued,on-stop,orphan,"+
	"refused,exit 3,childless,sent-below,none-at-work,sample met,sample met 1,sample busy 0,sample busy 1,sample busy 2 stale,sample kept 3,"+
	"sample no_listener waiting,sample server_gone,sample udp,sample unseen,sample blind,sample no_progress", ",")

var waits = []time.Duration{0, 0, time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 9 * time.Second}

// input is bytes that decide the configuration and the events.
type input []byte

// pick returns one of a list, the first after the last byte.
func pick[T any](in *input, list []T) T {
	if len(*in) == 0 {
		return list[0]
	}
	i := int((*in)[0]) % len(list)
	*in = (*in)[1:]
	return list[i]
}

// player plays events on a machine and checks the invariants after each.
type player struct {
	*testing.T
	cfg    stop.Config
	m      *stop.Machine
	now    time.Time
	did    map[stop.Verb]int
	onStop bool // --on-stop runs
}

// handle plays an event and checks the answer.
func (p *player) handle(e stop.Event) {
	p.Helper()
	before := p.m.State()
	p.onStop = p.onStop && e.Kind != stop.OnStopEnded
	actions := p.m.Handle(p.now, e)
	r := p.m.Record()
	for _, a := range actions {
		p.did[a.Verb]++
		late := a.Verb == stop.Send && !r.ExitedAt.IsZero()
		if before == stop.Gone || late || a.Verb == stop.KillOnStop && !p.onStop {
			p.Fatalf("%v: %v of %v, from %v to %v", e, a, actions, before, p.m.State())
		}
		p.onStop = a.Verb == stop.RunOnStop || p.onStop && a.Verb != stop.KillOnStop
	}
	gone := p.m.State() == stop.Gone
	stopped := !r.TriggeredAt.IsZero()
	once := true
	for _, verb := range []stop.Verb{stop.StartSampling, stop.StopHealth, stop.RunOnStop, stop.ReportLate, stop.ReportEnd} {
		once = once && p.did[verb] < 2
	}
	if !once || (gone && stopped) != (p.did[stop.ReportEnd] == 1) || gone && p.onStop {
		p.Fatalf("%v: %v, having done %v", e, p.m.State(), p.did)
	}
}

// tick plays a Tick for every deadline up to now, and checks that an early one does nothing, and
// that neither the hold nor KILL is late.
func (p *player) tick() {
	p.Helper()
	at, due := p.m.Deadline()
	for ticks := 0; due && !at.After(p.now); at, due = p.m.Deadline() {
		p.handle(stop.Event{Kind: stop.Tick})
		ticks++
		if ticks > 20 {
			p.Fatalf("deadline %v stays", at)
		}
	}
	state := p.m.State()
	actions := p.m.Handle(p.now, stop.Event{Kind: stop.Tick})
	if again, _ := p.m.Deadline(); actions != nil || again != at || p.m.State() != state {
		p.Fatalf("an early tick: %v, %v to %v", actions, state, p.m.State())
	}
	longest := p.cfg.Gate.MaxHold()
	if p.m.Searching() {
		longest = min(longest+time.Second/2, p.cfg.Gate.Ceiling)
	}
	if state == stop.Holding && p.now.Sub(p.m.Record().TriggeredAt) >= longest {
		p.Fatalf("holding for longer than %v", longest)
	}
}

// play plays the input. At its end the command exits, and the linger time and the grace period pass,
// which must end the sequence.
func play(t *testing.T, in input) {
	var words []string
	for _, line := range choices {
		words = append(words, pick(&in, append(strings.Fields(line), "", "")))
	}
	planned := readPlan(t, words)
	if planned == nil {
		return
	}
	cfg := planned.Stop
	p := &player{T: t, cfg: cfg, m: stop.New(cfg), now: epoch, did: map[stop.Verb]int{}}
	p.handle(script.ParseEvent(pick(&in, strings.Fields("tick tick tick TERM hold HUP"))))
	unknown := planned.Preset == preset.Auto
	for len(in) > 0 {
		if unknown && len(in)%8 == 0 && len(p.m.Record().Sent) == 0 { // the server is known by now, and has a plan
			unknown = false
			server := pick(&in, preset.All())
			p.cfg = testutil.Must(planned.Recognized(&server)).Stop
			p.m.Replan(p.cfg)
		}
		p.handle(script.ParseEvent(pick(&in, events)))
		p.now = p.now.Add(pick(&in, waits))
		if at, due := p.m.Deadline(); due && len(in)%2 == 0 {
			p.now = at
		}
		p.tick()
	}
	p.handle(script.ParseEvent("exit 3"))
	p.now = p.now.Add(max(cfg.Linger, cfg.Grace))
	p.tick()
	if p.m.State() != stop.Gone {
		t.Fatalf("%v after the exit, the linger time and the grace period", p.m.State())
	}
}

func FuzzMachine(f *testing.F) {
	random := rand.NewChaCha8([32]byte{})
	for length := range 2000 {
		bytes := make([]byte, 40+length%200)
		random.Read(bytes)
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) { play(t, bytes) })
}
