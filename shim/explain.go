package shim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Explain is what would happen at a stop, in plain words, a sentence a line; and
// what there is to be warned of. An error is what Run would find in the
// configuration: what only the place can tell (a folder, a port, a program that is
// not there) it does not look for, since a pod is reviewed elsewhere. For the same
// reason there is no terminal.
func Explain(cfg Config) (text string, warnings []string, err error) {
	p, err := cfg.plan(false, true)
	if err != nil {
		return "", nil, err
	}
	if found := foreseen(cfg.Command); p.auto && found != nil {
		p.stop.Preset = p.adopt(found)
		p.stop.StopSignals |= p.stop.Preset.StopSignals
	}
	e := explainer{&p, &cfg}
	lines := e.before()
	if stops := e.stops(); len(stops) > 0 {
		lines = append(append(lines, e.stop(stops)...), e.after()...)
	} else {
		lines = append(lines, "no signal begins a stop")
	}
	for i, line := range lines {
		lines[i] = quote.Line(line)
	}
	return strings.Join(lines, "\n") + "\n", p.warnings, nil
}

// explainer has the words for a plan.
type explainer struct {
	*plan
	cfg *Config
}

// before is what is so while the command runs.
func (e explainer) before() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if len(e.cfg.Command) > 0 {
		say("runs %s", quote.Shell(e.cfg.Command))
	}
	if path := e.cfg.AliveFile; path != "" {
		say("keeps %s locked while it runs, for neighbours that wait for it", quote.Word(path))
	}
	if h := e.cfg.Health; h != nil {
		how := "answers health checks on %v with 200"
		if h.Target.Port() != 0 {
			how = "passes health checks on, %v, which are no traffic"
		}
		during := map[HealthMode]string{HealthPass: "goes on so during a stop", HealthFail: "from the first stop signal on they get 503", HealthClose: "from the first stop signal on they are refused"}
		say(how+"; "+during[e.cfg.HealthDuring], h)
	}
	var sends []string
	for _, r := range e.cfg.Rewrites {
		if r.To == 0 {
			sends = append(sends, fmt.Sprintf("drops %v", r.From))
		} else {
			sends = append(sends, fmt.Sprintf("sends %v where %v arrives", r.To, r.From))
		}
	}
	if len(sends) > 0 {
		say("%s", strings.Join(sends, ", "))
	}
	if e.cfg.Preset != "" {
		say("preset %s", e.presetText())
	}
	return lines
}

// presetText is the preset in words.
func (e explainer) presetText() string {
	text := e.cfg.Preset
	switch {
	case text != AutoPreset:
	case e.preset == nil:
		return "auto: that of the program that runs when a stop signal comes"
	default:
		text = "auto, probably " + e.preset.Name
	}
	if e.preset.Schedule != "" {
		text += ", stopped by " + e.preset.Schedule
	}
	return text + ": " + e.preset.Says
}

// stops are the signals that begin a stop, the usual one first.
func (e explainer) stops() (stops []sig.Signal) {
	for s := range e.plan.stop.StopSignals.All {
		if _, passes := e.plan.stop.Rewrites.Of(s); passes {
			stops = append(stops, s)
		}
	}
	if i := slices.Index(stops, sig.TERM); i > 0 {
		stops = slices.Insert(slices.Delete(stops, i, i+1), 0, sig.TERM)
	}
	return stops
}

// stop is what happens at a stop, in order.
func (e explainer) stop(stops []sig.Signal) (lines []string) {
	var names []string
	for _, s := range stops {
		names = append(names, s.String())
	}
	begin := "on " + orList(names) + ": "
	gate := &e.plan.stop.Gate
	switch {
	case !gate.Holds() && !e.plan.stop.SequenceWithoutHold:
		return []string{begin + "passes it on at once; no hold, schedule or preset was asked for"}
	case !gate.Holds():
		lines = append(lines, begin+"does not hold")
	default:
		lines = append(lines, begin+e.holding())
	}
	if len(e.cfg.OnStop) > 0 {
		lines = append(lines, "  beside that runs "+quote.Shell(e.cfg.OnStop))
	}
	if gate.Holds() {
		lines = append(lines, "  a second one, more than a second later, or INT, ends that at once")
	}
	lines = append(lines, "  then "+e.sending(stops[0]))
	for _, s := range stops[1:] {
		if other := e.plan.stop.ScheduleFor(s); !slices.Equal(other, e.plan.stop.ScheduleFor(stops[0])) {
			lines = append(lines, fmt.Sprintf("  where %v came: %v", s, other))
		}
	}
	if e.cfg.KillAfter == 0 && !slices.ContainsFunc(e.cfg.Schedule, func(s Step) bool { return s.Signal == sig.KILL }) {
		lines = append(lines, fmt.Sprintf("  sends no KILL: that is the orchestrator's, at %s", e.grace()))
	}
	return lines
}

// holding is the hold in words.
func (e explainer) holding() string {
	g := &e.plan.stop.Gate
	var until []string
	silence := stop.FormatDuration(e.traffic.QuietFor)
	switch g.Until {
	case Settled:
		until = append(until, "no new connection has come for "+silence)
	case Quiet:
		until = append(until, "nobody has connected or sent a byte for "+silence+" and no request is in flight")
	case Drained:
		until = append(until, "nobody has connected or sent a byte for "+silence+" and no connection is open")
	}
	for _, path := range e.cfg.WaitGone {
		until = append(until, quote.Word(path)+" is gone")
	}
	if g.OnStop {
		until = append(until, "--on-stop has ended")
	}
	if len(until) == 0 {
		return "keeps serving for " + stop.FormatDuration(g.Floor)
	}
	text := "keeps serving until " + strings.Join(until, ", and ")
	if g.Floor > 0 {
		text = fmt.Sprintf("keeps serving at least %s, until %s", stop.FormatDuration(g.Floor), strings.Join(until, ", and "))
	}
	return fmt.Sprintf("%s, at most %s", text, stop.FormatDuration(g.Ceiling))
}

// sending is what is sent after the hold, and when at the latest.
func (e explainer) sending(trigger sig.Signal) string {
	var parts []string
	var wait time.Duration
	at := e.plan.stop.Gate.MaxHold()
	steps := e.plan.stop.ScheduleFor(trigger)
	for i, step := range steps {
		switch {
		case step.Forever:
			parts = append(parts, fmt.Sprintf("%sfor ever again %v", later(wait), steps[i+1:]))
		case step.Signal == 0:
			wait, at = wait+step.Wait, at+step.Wait
			continue
		default:
			parts = append(parts, fmt.Sprintf("%s%v%s", later(wait), step.Signal, e.latest(step, at)))
		}
		if wait = 0; step.Forever {
			break
		}
	}
	if after := e.plan.stop.KillAfter; after > 0 {
		at := e.plan.stop.Gate.MaxHold() + steps.InitialWait() + after
		parts = append(parts, fmt.Sprintf("KILL %s after the first signal%s", stop.FormatDuration(after), e.latest(Step{Signal: sig.KILL}, at)))
	}
	return strings.Join(parts, ", ")
}

func later(wait time.Duration) string {
	if wait == 0 {
		return ""
	}
	return stop.FormatDuration(wait) + " later "
}

// latest says when a KILL comes.
func (e explainer) latest(step Step, at time.Duration) string {
	g := &e.plan.stop.Gate
	switch {
	case step.Signal != sig.KILL:
		return ""
	case g.Until != Elapsed || g.WaitGone || g.OnStop:
		return fmt.Sprintf(", at %s at the latest", stop.FormatDuration(at))
	}
	return fmt.Sprintf(", at %s", stop.FormatDuration(at))
}

// after is what follows the command's end, and what the orchestrator must give.
func (e explainer) after() (lines []string) {
	if e.cfg.Linger > 0 {
		lines = append(lines, fmt.Sprintf("when the command has exited: TERM to what it has left, and KILL %s later", stop.FormatDuration(e.cfg.Linger)))
	}
	var codes []string
	for from, to := range e.exits {
		codes = append(codes, fmt.Sprintf("%d as %d", from, to))
	}
	if e.preset != nil {
		for _, m := range e.preset.Exit {
			if _, given := e.exits[m.From]; !given {
				codes = append(codes, fmt.Sprintf("%d as %d after a stop", m.From, m.To))
			}
		}
	}
	if slices.Sort(codes); len(codes) > 0 {
		lines = append(lines, "reports exit code "+strings.Join(codes, ", "))
	}
	if !e.plan.stop.Gate.Holds() && e.cfg.Schedule == nil && e.cfg.KillAfter == 0 && e.cfg.Linger == 0 {
		return lines
	}
	hold := e.plan.stop.Gate.MaxHold()
	need := e.plan.stop.Grace
	if e.assumed {
		need = e.cfg.graceFor(hold)
	}
	text := fmt.Sprintf("your pod needs terminationGracePeriodSeconds of %v or more (docker stop -t %[1]v)", math.Ceil(need.Seconds()))
	if left := need - hold - e.cfg.Schedule.InitialWait() - e.cfg.Linger; hold > 0 {
		text += fmt.Sprintf(": %s for the hold, and %s for the command to stop by itself", stop.FormatDuration(hold), stop.FormatDuration(left))
	}
	if e.assumed {
		text += fmt.Sprintf("; %s is assumed here: give --grace-period", stop.FormatDuration(e.plan.stop.Grace))
	}
	return append(lines, text)
}

// grace is the grace period in words.
func (e explainer) grace() string {
	if e.assumed {
		return stop.FormatDuration(e.plan.stop.Grace) + ", as is assumed (--grace-period)"
	}
	return stop.FormatDuration(e.plan.stop.Grace)
}

// orList is a list in words.
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
