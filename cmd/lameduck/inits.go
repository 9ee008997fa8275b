package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// inits are krallin/tini 0.19, which is Docker's docker-init; Yelp/dumb-init 1.2.5; and
// openSUSE/catatonit 0.2, which is Podman's podman-init, without the pause process of pods (-P).
// docker info wants the versions of tini and catatonit to begin as they do.
var inits = []dropin{
	{"tini", "docker-init", "tini [-hlsvwg] [-p SIGNAL] [-e CODE] [--] PROGRAM [ARG...]",
		"tini version 0.19.0_lameduck-%s\n", syscall.Stdout, syscall.Stdout, exitNotFound, exitRefused, 1},
	{"dumb-init", "", "dumb-init [-cvhV] [-r FROM:TO]... [--] PROGRAM [ARG...]",
		"dumb-init v1.2.5 (lameduck %s)\n", syscall.Stderr, syscall.Stderr, 2, 2, 2},
	{"catatonit", "podman-init", "catatonit [-ghLV] [--] PROGRAM [ARG...]",
		"tini version 0.2.1_catatonit_lameduck-%s\n", syscall.Stdout, syscall.Stderr, 1, 1, 1},
}

// initFlags are the flags of the inits, each of those that the tag names. No letter has two meanings.
type initFlags struct {
	Help        bool     `of:"tini dumb-init catatonit" short:"h"`
	Version     bool     `of:"tini dumb-init catatonit" short:"V"`
	License     bool     `of:"tini" short:"l"`
	LicenseText bool     `of:"catatonit" short:"L"`
	Subreaper   bool     `of:"tini" short:"s"`
	Pdeath      []string `of:"tini" short:"p" sep:"none"`
	Verbose     []bool   `of:"tini dumb-init" short:"v" type:"bool"`
	Warn        bool     `of:"tini" short:"w"`
	Group       bool     `of:"tini catatonit" short:"g"`
	Expect      []string `of:"tini" short:"e" sep:"none"`
	SingleChild bool     `of:"dumb-init" short:"c"`
	Rewrite     []string `of:"dumb-init" short:"r" sep:"none"`
}

// answer returns what a flag that only asks prints, and the descriptor to print to. ok reports
// whether there is such a flag.
func (d *dropin) answer(f *initFlags) (text string, fd int, ok bool) {
	switch {
	case f.Version:
		return fmt.Sprintf(d.version, version), d.versionTo, true
	case f.License || f.LicenseText:
		return license, syscall.Stdout, true
	}
	return helpAs(d.usage), d.helpTo, f.Help
}

// adjust puts the flags and variables into cfg.
func (f *initFlags) adjust(cfg *shim.Config, init string) error {
	variable := func(name string) (value string, set bool) { return cli.Lookup(cfg.Env, name) }
	switch init {
	case "tini":
		_, adopts := variable("TINI_SUBREAPER")
		if adopts || f.Subreaper {
			cfg.Subreaper = shim.Yes
		}
		_, group := variable("TINI_KILL_PROCESS_GROUP")
		cfg.Group = cfg.Group || group
		verbosity := 1 + len(f.Verbose)
		if value, set := variable("TINI_VERBOSITY"); set { // wins over -v; as with atoi(3), a word is 0
			verbosity, _ = strconv.Atoi(value)
		}
		cfg.Level = max(cfg.Level, min(shim.Level(verbosity), shim.Debug))
		if verbosity <= 0 {
			cfg.Level = shim.Error
		}
	case "dumb-init":
		if value, _ := variable("DUMB_INIT_DEBUG"); value == "1" || len(f.Verbose) > 0 {
			cfg.Level = shim.Debug
		}
		value, _ := variable("DUMB_INIT_SETSID")
		cfg.Session = value != "0" && !f.SingleChild
		cfg.StopSelfOnTSTP, cfg.TermGroup = true, cfg.Session
		cfg.ResetSignals, cfg.SameGroup = true, !cfg.Session && !cfg.Group
		if cfg.Subreaper == shim.Auto && cfg.Linger == 0 { // to linger is to wait for orphans
			cfg.Subreaper = shim.No
		}
	case "catatonit":
		if _, set := variable("CATATONIT_LOG"); set {
			return errors.New("CATATONIT_LOG is reserved: unset it")
		}
		if _, set := variable("CATATONIT_DEBUG"); set {
			cfg.Level = shim.Debug
		}
	}
	cfg.Group = cfg.Group || f.Group
	cfg.WarnReaped = f.Warn
	return f.read(cfg)
}

// read puts the values of flags into cfg.
func (f *initFlags) read(cfg *shim.Config) (err error) {
	for _, text := range f.Expect {
		if err := expectExit(cfg, text); err != nil {
			return fmt.Errorf("-e %s: %w", text, err)
		}
	}
	for _, text := range f.Pdeath {
		if cfg.ParentDeathSignal, err = shim.ParseSignal(text); err != nil {
			return fmt.Errorf("-p %s: %w", text, err)
		}
	}
	for _, text := range f.Rewrite {
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

// expectExit has an exit code reported as 0, which wins over LAMEDUCK_EXIT_CODE.
func expectExit(cfg *shim.Config, text string) error {
	code, err := strconv.Atoi(strings.TrimSpace("0" + strings.TrimLeft(text, " +")))
	if err != nil || code > 255 {
		return errors.New("give an exit code from 0 to 255")
	}
	cfg.ExitCodes = slices.DeleteFunc(cfg.ExitCodes, func(m shim.ExitMap) bool { return m.From == code })
	cfg.ExitCodes = append(cfg.ExitCodes, shim.ExitMap{From: code})
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
