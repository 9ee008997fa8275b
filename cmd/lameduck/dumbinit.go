package main

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// dumbInit is Yelp/dumb-init 1.2.5.
type dumbInit struct {
	SingleChild bool     `short:"c"`
	Rewrite     []string `short:"r" sep:"none"`
	Verbose     bool     `short:"v"`
	Help        bool     `short:"h"`
	Version     bool     `short:"V"`
}

const dumbInitUsage = "dumb-init [-cvhV] [-r FROM:TO]... [--] PROGRAM [ARG...]"

func (d *dumbInit) answer() (string, int, bool) {
	if d.Version {
		return "dumb-init v1.2.5 (lameduck " + version + ")\n", syscall.Stderr, true
	}
	return helpAs(dumbInitUsage), syscall.Stderr, d.Help
}

func (d *dumbInit) adjust(cfg *shim.Config) error {
	if value, _ := cli.Lookup(cfg.Env, "DUMB_INIT_DEBUG"); value == "1" || d.Verbose {
		cfg.Level = shim.Debug
	}
	value, _ := cli.Lookup(cfg.Env, "DUMB_INIT_SETSID")
	cfg.Session = value != "0" && !d.SingleChild
	cfg.StopSelfOnTSTP, cfg.TermGroup = true, cfg.Session
	cfg.ResetSignals, cfg.SameGroup = true, !cfg.Session && !cfg.Group
	if cfg.Subreaper == shim.Auto && cfg.Linger == 0 { // to linger is to wait for orphans
		cfg.Subreaper = shim.No
	}
	for _, text := range d.Rewrite {
		r, err := parseNumbers(text)
		if err != nil {
			return fmt.Errorf("-r %s: %w", text, err)
		}
		rewrite(cfg, r, true) // the last one counts
		cfg.TERMDropped = cfg.TERMDropped && r.From != shim.TERM || r == shim.Rewrite{From: shim.TERM}
	}
	if cfg.Session { // TSTP, TTIN and TTOU do not stop an orphaned group
		for _, from := range []shim.Signal{shim.TSTP, shim.TTIN, shim.TTOU} {
			rewrite(cfg, shim.Rewrite{From: from, To: shim.STOP}, false)
		}
	}
	return nil
}

// rewrite adds r to cfg. If cfg rewrites that signal already, r replaces the older rewrite
// or is left out.
func rewrite(cfg *shim.Config, r shim.Rewrite, replace bool) {
	i := slices.IndexFunc(cfg.Rewrites, func(old shim.Rewrite) bool { return old.From == r.From })
	switch {
	case r.From == 0:
	case i < 0:
		cfg.Rewrites = append(cfg.Rewrites, r)
	case replace:
		cfg.Rewrites[i] = r
	}
}

// parseNumbers reads FROM:TO, with FROM from 1 to 31 and TO from 0 to 31, as dumb-init's
// scanf(3) does: spaces and a sign may come before a number, and anything after TO. Names
// of signals are fine too. From is 0, a rewrite without effect, for signals that never
// arrive (KILL, STOP, CHLD): dumb-init accepts such rewrites.
func parseNumbers(text string) (r shim.Rewrite, err error) {
	var from, to int
	if _, err := fmt.Sscanf(text, "%d:%d", &from, &to); err != nil {
		return shim.ParseRewrite(text)
	}
	if from < 1 || from > 31 || to < 0 || to > 31 {
		return r, errors.New("give FROM:TO with FROM from 1 to 31 and TO from 0 to 31")
	}
	r = shim.Rewrite{From: shim.Signal(from), To: shim.Signal(to)}
	if shim.Uncatchable(r.From) != "" {
		r.From = 0
	}
	return r, nil
}
