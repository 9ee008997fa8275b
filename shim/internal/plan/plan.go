package plan

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Defaults of an adaptive hold, which has no floor unless given.
const (
	defaultQuiet       = 4 * time.Second // or half of the ceiling, if less; shorter than the usual gap between probes
	defaultMaxSilence  = 30 * time.Second
	defaultUnseenFloor = 5 * time.Second // the floor where the traffic cannot be observed
)

// Place is where a plan is carried out.
type Place struct {
	Terminal bool // standard input is a terminal
	PID1     bool // lameduck is PID 1, so all processes of the PID namespace are the command's
	Hook     bool // a preStop hook holds beside PID 1

	// The known server that the command is; nil: that of a preset's name. Of a plan it is nameless if the
	// command is none, or not known yet.
	Server *preset.Preset

	// Uncatchable returns why a signal never reaches lameduck, "" if it does.
	Uncatchable func(sig.Signal) string
}

// Plan is a configuration with defaults filled in and contradictions refused.
type Plan struct {
	Config // as given, with the exit codes of the server
	Place

	Stop        stop.Config
	Traffic     traffic.Config
	Letgo       letgo.Config
	AssumedFrom string   // the orchestrator whose grace period is assumed: "Kubernetes"; "": it was given
	GraceCaveat string   // why the assumed one is too short; "": it is long enough
	Warnings    []string // those of Config first
}

// Review makes the plan of c for people, wherever they look at it. If the server is to be found, it is
// the one that the command probably is.
func Review(c *Config) (*Plan, error) {
	p, err := New(c, Place{PID1: true, Uncatchable: sig.Uncatchable})
	if likely := preset.MatchCommand(c.Command); err == nil && c.Preset == preset.Auto && likely != nil {
		return p.Recognized(likely)
	}
	return p, err
}

// Recognized returns the plan for a command that has been recognized as a known server.
func (p *Plan) Recognized(server *preset.Preset) (*Plan, error) {
	at := p.Place
	at.Server = server
	return New(&p.Config, at)
}

// New makes the plan of c. Which server the command is, if that is to be found (preset.Auto), is
// not known yet; see Recognized.
//
// PID 1 does no job control: PID 1 belongs to no shell's job, and no signal of its own PID
// namespace can stop PID 1. A STOP to itself would only discard a pending CONT.
func New(c *Config, at Place) (*Plan, error) {
	at.Server = cmp.Or(at.Server, preset.Named(c.Preset), &preset.Preset{})
	grace, assumedFrom := c.GracePeriod, ""
	if grace == 0 {
		grace, assumedFrom = assumedGrace(c.Env)
	}
	longest := c.longestHold(grace, assumedFrom != "")
	quietFor := cmp.Or(c.QuietFor, min(defaultQuiet, longest/2))
	stops := c.Schedule != nil || c.KillAfter > 0 || c.Preset != ""
	p := &Plan{
		Config:      *c,
		Place:       at,
		AssumedFrom: assumedFrom,
		Stop: stop.Config{
			Gate:                c.gate(longest),
			Grace:               grace,
			Linger:              c.Linger,
			AwaitWork:           !c.LingerGiven && !at.Hook,
			Schedule:            c.Schedule,
			KillAfter:           c.KillAfter,
			SequenceWithoutHold: stops,
			StopsBeside:         stops && at.Hook,
			HealthListener:      c.Health != nil,
			ExitEndsCommand:     at.PID1,
			JobControl:          !at.PID1 && !c.SameGroup,
			StopSelfOnTSTP:      c.StopSelfOnTSTP && !at.PID1,
			TermGroup:           c.TermGroup,
		},
		Traffic: traffic.Config{ // of a hold that is not adaptive, for the report
			QuietFor:    quietFor,
			MaxSilence:  cmp.Or(c.MaxSilence, defaultMaxSilence),
			Poll:        min(max(quietFor/12, 10*time.Millisecond), time.Second),
			IgnorePorts: c.IgnorePorts,
			IgnorePeers: c.IgnorePeers,
			Probes:      c.Probes,
			Until:       c.Until,
		},
		Letgo: letgo.Config{QuietFor: quietFor, CloseIdle: c.CloseIdle, Goaway: slices.Clone(c.Goaway)},
	}
	if c.CloseIdle {
		p.Letgo.Goaway = append(p.Letgo.Goaway, letgo.Auto)
	}
	p.ExitCodes = slices.Concat(c.ExitCodes, at.Server.Exit)
	err := p.signals()
	p.GraceCaveat = p.graceCaveat()
	p.Warnings = p.warnings()
	if err := cmp.Or(err, c.contradiction(), p.misfit(), p.tell()); err != nil {
		return nil, err
	}
	return p, nil
}

// signals fills in the rewrites, and the signals that start the sequence: TERM, the signal
// that TERM is rewritten to, which is often the image's STOPSIGNAL and then arrives in TERM's
// place, those that were given, and those of the server. With a terminal, resizing sends WINCH,
// which therefore stops nothing. Signals of the C library's threads are dropped unless the
// configuration names them: no init passes them on, and they end a C program.
func (p *Plan) signals() error {
	s := &p.Stop
	s.Preset = p.Server.Schedule
	for _, r := range p.Rewrites {
		if why := p.Uncatchable(r.From); why != "" {
			return fault("rewrite", why,
				"%s: cannot rewrite %v, which never reaches lameduck", Flag("rewrite", r), r.From)
		}
		if _, twice := s.Rewrites.Of(r.From); twice {
			return fault("rewrite", "keep one", "%s: %v is rewritten twice", Flag("rewrite", r), r.From)
		}
		s.Rewrites = append(s.Rewrites, r)
	}
	for _, given := range p.StopSignals {
		if why := p.Uncatchable(given); why != "" {
			return fault("stop-signal", why, "%s never reaches lameduck", Flag("stop-signal", given))
		}
	}
	s.StopSignals = sig.SetOf(p.StopSignals...).With(sig.TERM) | sig.SetOf(p.Server.StopSignals...)
	to, _ := s.Rewrites.Of(sig.TERM)
	if to != 0 && to != sig.INT && p.Uncatchable(to) == "" {
		s.StopSignals = s.StopSignals.With(to)
	}
	if p.Terminal {
		s.StopSignals = s.StopSignals.Without(sig.SetOf(sig.WINCH))
	}
	for internal := range sig.Internal.Without(s.StopSignals).All {
		s.Rewrites = append(s.Rewrites, Rewrite{From: internal}) // unless it is rewritten
	}
	return nil
}

// Starts returns the signals that begin a stop, TERM first.
func (p *Plan) Starts() (list []sig.Signal) {
	for s := range p.Stop.StopSignals.All {
		switch to, _ := p.Stop.Rewrites.Of(s); {
		case to == 0:
		case s == sig.TERM:
			list = slices.Insert(list, 0, s)
		default:
			list = append(list, s)
		}
	}
	return list
}

// FirstSteps returns the steps after the hold that the first of Starts begins.
func (p *Plan) FirstSteps() stop.Schedule { return p.Stop.ScheduleFor(p.Starts()[0]) }

// gate returns the gate of a hold with a ceiling.
func (c *Config) gate(ceiling time.Duration) stop.Gate {
	unseenFloor := cmp.Or(c.MaxDelay, c.Delay)
	if unseenFloor == 0 && !c.DelayGiven {
		unseenFloor = defaultUnseenFloor
	}
	return stop.Gate{
		Floor: c.Delay, Ceiling: ceiling, UnseenFloor: min(unseenFloor, ceiling),
		Until:    c.Until,
		WaitGone: len(c.WaitGone) > 0 || c.WaitURL != nil,
		OnStop:   len(c.OnStop.Command) > 0 || c.OnStop.Request != nil,
	}
}

// ExitCode returns the exit code to report for the command's own. stopped says that a stop signal came.
// What is only for a stop goes before what is for every exit, and what was given before the preset's.
func (c *Config) ExitCode(code int, stopped bool) int {
	for _, onlyStopped := range []bool{true, false} {
		for _, m := range c.ExitCodes {
			if m.From == code && m.Stopped == onlyStopped && (stopped || !onlyStopped) {
				return m.To
			}
		}
	}
	return code
}

// FlagError is a fault of a flag, or of its variable.
type FlagError struct {
	Flag   string // the flag's name, as in --delay: "delay"; an unknown flag is as it was given
	Err    error  // the fault, with the flag
	Remedy string // what would be right; "" if Err says so, or if nothing is known
}

func (e *FlagError) Error() string {
	if e.Remedy == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + ": " + e.Remedy
}

// fault returns a FlagError. The format is that of quote.InWords.
func fault(flag, remedy, format string, args ...any) error {
	return &FlagError{flag, errors.New(quote.InWords(format, args...)), remedy}
}
