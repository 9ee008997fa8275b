package plan

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/report"
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

	// Uncatchable returns why a signal never reaches lameduck, "" if it does.
	Uncatchable func(sig.Signal) string
}

// Plan is a configuration with defaults filled in and contradictions refused.
type Plan struct {
	Config // as given, with the exit codes of the server
	Place
	Server *preset.Preset // the known server that the command is; nil: none, or unknown as yet

	Stop     stop.Config
	Traffic  traffic.Config
	Letgo    letgo.Config
	Terms    report.Terms
	Warnings []string // those of Config first
}

// New makes the plan of c. Which server the command is, if that is to be found (preset.Auto), is
// not known yet; see Recognized.
func New(c *Config, at Place) (*Plan, error) {
	named, _ := preset.Named(c.Preset)
	return c.plan(at, named)
}

// Recognized returns the plan for a command that has been recognized as a known server.
func (p *Plan) Recognized(server *preset.Preset) (*Plan, error) {
	return p.Config.plan(p.Place, server)
}

// plan makes the plan for a server, which is nil if the server is unknown.
//
// PID 1 does no job control: PID 1 belongs to no shell's job, and no signal of its own PID
// namespace can stop PID 1. A STOP to itself would only discard a pending CONT.
func (c *Config) plan(at Place, server *preset.Preset) (*Plan, error) {
	f := c.fit()
	stops := c.Schedule != nil || c.KillAfter > 0 || c.Preset != ""
	p := &Plan{
		Config: *c,
		Place:  at,
		Server: server,
		Stop: stop.Config{
			Gate:                c.gate(f.ceiling),
			Grace:               f.grace,
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
		Traffic: c.traffic(f.ceiling),
	}
	p.Letgo = c.letgo(p.Traffic.QuietFor)
	if err := p.signals(); err != nil {
		return nil, err
	}
	known := cmp.Or(server, &preset.Preset{})
	p.ExitCodes = slices.Concat(c.ExitCodes, known.Exit)
	p.Terms = report.Terms{
		Config: &p.Stop, TrafficConfig: &p.Traffic, LetgoConfig: &p.Letgo, Hook: at.Hook, WaitGone: c.WaitGone,
		GraceAssumed: f.assumedFrom != "", AssumedFrom: f.assumedFrom, GraceCaveat: p.graceCaveat(f),
		GraceFor: c.graceFor, Server: known,
	}
	if c.WaitURL != nil {
		p.Terms.WaitURL = c.WaitURL.URL
	}
	p.Warnings = p.warnings(f)
	if err := cmp.Or(c.contradiction(), c.misfit(f), p.tell()); err != nil {
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
	for _, r := range p.Rewrites {
		if why := p.Uncatchable(r.From); why != "" {
			return fault("rewrite", why,
				"%s: cannot rewrite %v, which never reaches lameduck", Flag("rewrite", r), r.From)
		}
		if err := s.Rewrites.Add(r); err != nil {
			return fault("rewrite", "", "%s: %v", Flag("rewrite", r), err)
		}
	}
	for _, given := range p.StopSignals {
		if why := p.Uncatchable(given); why != "" {
			return fault("stop-signal", why, "%s never reaches lameduck", Flag("stop-signal", given))
		}
	}
	s.StopSignals = sig.SetOf(p.StopSignals...).With(sig.TERM)
	to, passes := s.Rewrites.Of(sig.TERM)
	if passes && to != sig.INT && p.Uncatchable(to) == "" {
		s.StopSignals = s.StopSignals.With(to)
	}
	if p.Server != nil {
		s.StopSignals |= sig.SetOf(p.Server.StopSignals...)
		s.Preset = p.Server.Schedule
	}
	if p.Terminal {
		s.StopSignals = s.StopSignals.Without(sig.SetOf(sig.WINCH))
	}
	for internal := range sig.Internal.Without(s.Rewrites.Given() | s.StopSignals).All {
		_ = s.Rewrites.Add(Rewrite{From: internal}) // cannot fail: internal has no rewrite yet
	}
	return nil
}

// gate returns the gate of a hold with a ceiling.
func (c *Config) gate(ceiling time.Duration) stop.Gate {
	unseenFloor := cmp.Or(c.MaxDelay, c.Delay)
	if unseenFloor == 0 && !c.DelayGiven {
		unseenFloor = defaultUnseenFloor
	}
	return stop.Gate{
		Floor: c.Delay, Ceiling: ceiling, UnseenFloor: min(unseenFloor, ceiling),
		Until: c.Until, WaitGone: len(c.WaitGone) > 0 || c.WaitURL != nil, OnStop: c.OnStop.Runs(),
	}
}

// traffic returns how to judge the traffic of a hold with a ceiling. For a hold that is not
// adaptive the traffic's summary explains whether it is quiet.
func (c *Config) traffic(ceiling time.Duration) traffic.Config {
	quietFor := cmp.Or(c.QuietFor, min(defaultQuiet, ceiling/2))
	return traffic.Config{
		QuietFor:    quietFor,
		MaxSilence:  cmp.Or(c.MaxSilence, defaultMaxSilence),
		Poll:        min(max(quietFor/12, 10*time.Millisecond), time.Second),
		IgnorePorts: c.IgnorePorts,
		IgnorePeers: c.IgnorePeers,
		Probes:      c.Probes,
		Until:       c.Until,
	}
}

// letgo returns on which connections clients are asked to choose again.
func (c *Config) letgo(quietFor time.Duration) letgo.Config {
	goaway := slices.Clone(c.Goaway)
	if c.CloseIdle {
		goaway = append(goaway, letgo.Auto)
	}
	return letgo.Config{QuietFor: quietFor, CloseIdle: c.CloseIdle, Goaway: goaway}
}

// ExitCode returns the exit code to report for the command's own. stopped says that a stop signal came.
// What is only for a stop goes before what is for every exit, and what was given before the preset's.
func (p *Plan) ExitCode(code int, stopped bool) int {
	for _, onlyStopped := range []bool{true, false} {
		for _, m := range p.ExitCodes {
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

func (e *FlagError) Unwrap() error { return e.Err }

// fault returns a FlagError. The format is that of report.InWords.
func fault(flag, remedy, format string, args ...any) error {
	return &FlagError{flag, errors.New(report.InWords(format, args...)), remedy}
}
