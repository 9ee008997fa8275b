package shim

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Explain is what would happen at a stop, in plain words, a sentence a line; and
// what there is to be warned of. An error is one of Run's before its start.
func Explain(cfg Config) (text string, warnings []string, err error) {
	p, err := cfg.plan(proc.IsTerminal(0), os.Getpid() == 1)
	if err != nil {
		return "", nil, err
	}
	if found := foreseen(cfg.Command); p.auto && found != nil {
		p.stop.Preset = p.adopt(found)
		p.stop.Stops |= p.stop.Preset.Stops
	}
	var b strings.Builder
	for _, line := range append(p.course(&cfg), p.needs(&cfg)) {
		if line != "" {
			fmt.Fprintln(&b, line)
		}
	}
	return b.String(), p.warnings, nil
}

// course is what happens, in order.
func (p *plan) course(cfg *Config) []string {
	var stops []string
	for s := range p.stop.Stops.All {
		stops = append(stops, s.String())
	}
	begin := "on " + orList(stops)
	var passed []string
	for _, r := range cfg.Rewrites {
		passed = append(passed, r.String())
	}
	lines := []string{"runs " + strings.Join(cfg.Command, " ")}
	if cfg.Health != nil {
		lines = append(lines, fmt.Sprintf("answers health checks on %v; from the first stop signal on: %v", cfg.Health, cfg.HealthDuring))
	}
	if len(passed) > 0 {
		lines = append(lines, "rewrites "+strings.Join(passed, ", "))
	}
	if cfg.Preset != "" {
		lines = append(lines, "preset "+p.presetText(cfg))
	}
	if !p.stop.Gate.Holds() && !p.stop.Sequence {
		return append(lines, begin+": passes the signal on at once; no hold, schedule or preset was asked for")
	}
	lines = append(lines, begin+": "+p.holding(cfg))
	if len(cfg.OnStop) > 0 {
		lines = append(lines, "beside that runs "+strings.Join(cfg.OnStop, " "))
	}
	lines = append(lines, "then "+p.sending())
	if cfg.Linger > 0 {
		lines = append(lines, fmt.Sprintf("when the command has exited: TERM to what is left, and KILL %s later", stop.Length(cfg.Linger)))
	}
	return lines
}

// presetText is the preset in words.
func (p *plan) presetText(cfg *Config) string {
	text := cfg.Preset
	if text == AutoPreset {
		text = "auto, by what runs when a signal comes"
		if p.preset != nil {
			text += "; probably " + p.preset.Name
		}
	}
	if p.preset != nil {
		text += ": " + p.preset.Says
	}
	return text
}

// holding is the hold in words.
func (p *plan) holding(cfg *Config) string {
	g := &p.stop.Gate
	if !g.Holds() {
		return "no hold"
	}
	var until []string
	silence := stop.Length(p.traffic.QuietFor)
	switch g.Until {
	case Settled:
		until = append(until, "no new connection came for "+silence)
	case Quiet:
		until = append(until, fmt.Sprintf("for %s no connection came and no byte moved, and no request is in flight", silence))
	case Drained:
		until = append(until, fmt.Sprintf("for %s no connection came and no byte moved, and none is open", silence))
	}
	for _, path := range cfg.WaitGone {
		until = append(until, path+" is gone")
	}
	if g.OnStop {
		until = append(until, "--on-stop has ended")
	}
	if len(until) == 0 {
		return "keeps serving for " + stop.Length(g.Floor)
	}
	return fmt.Sprintf("keeps serving at least %s, until %s, at most %s", stop.Length(g.Floor), strings.Join(until, ", and "), stop.Length(g.Ceiling))
}

// sending is what is sent after the hold, and when.
func (p *plan) sending() string {
	var parts []string
	wait := time.Duration(0)
	for _, step := range p.stop.Steps() {
		switch {
		case step.Forever:
			parts = append(parts, "and for ever again")
		case step.Signal == 0:
			wait += step.Wait
		case wait > 0:
			parts = append(parts, fmt.Sprintf("%s later %v", stop.Length(wait), step.Signal))
			wait = 0
		default:
			parts = append(parts, step.Signal.String())
		}
	}
	if p.stop.KillAfter > 0 {
		latest := p.stop.Gate.Longest() + p.stop.KillAfter
		parts = append(parts, fmt.Sprintf("KILL %s after the first signal, at %s at the latest", stop.Length(p.stop.KillAfter), stop.Length(latest)))
	}
	return strings.Join(parts, ", ")
}

// needs is what the orchestrator must give, and where the figure comes from.
func (p *plan) needs(cfg *Config) string {
	grace := p.stop.Grace
	if !p.stop.Gate.Holds() && !p.stop.Sequence && cfg.Linger == 0 {
		return ""
	}
	need := grace
	if p.assumed {
		need = cfg.graceFor(p.stop.Gate.Longest())
	}
	text := fmt.Sprintf("your pod needs terminationGracePeriodSeconds of %v or more (docker stop -t %[1]v)", need.Seconds())
	if p.assumed {
		return text + fmt.Sprintf("; %s is assumed: give --grace-period", stop.Length(grace))
	}
	return text
}

// orList is a list in words.
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
