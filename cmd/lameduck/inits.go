package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// inits are krallin/tini 0.19, which is Docker's docker-init; Yelp/dumb-init 1.2.5; and
// openSUSE/catatonit 0.2, which is Podman's podman-init, without the pause process of pods (-P).
// docker info wants the versions of tini and catatonit to begin as they do.
var inits = []dropin{
	{"tini", "docker-init", "tini [-hlsvwg] [-p SIGNAL] [-e CODE] [--] PROGRAM [ARG...]",
		"tini version 0.19.0_lameduck-%s\n", syscall.Stdout, syscall.Stdout,
		1, map[error]int{syscall.ENOENT: exitNotFound, syscall.EACCES: exitRefused}},
	{"dumb-init", "", "dumb-init [-cvhV] [-r FROM:TO]... [--] PROGRAM [ARG...]",
		"dumb-init v1.2.5 (lameduck %s)\n", syscall.Stderr, syscall.Stderr, 2, nil},
	{"catatonit", "podman-init", "catatonit [-ghLV] [--] PROGRAM [ARG...]",
		"tini version 0.2.1_catatonit_lameduck-%s\n", syscall.Stdout, syscall.Stderr, 1, nil},
}

// initFlags are the flags of the inits, each of those that the tag names. No letter has two meanings.
type initFlags struct {
	Help        bool           `of:"tini dumb-init catatonit" short:"h"`
	Version     bool           `of:"tini dumb-init catatonit" short:"V"`
	License     bool           `of:"tini" short:"l"`
	LicenseText bool           `of:"catatonit" short:"L"`
	Subreaper   bool           `of:"tini" short:"s"`
	Pdeath      shim.Signal    `of:"tini" short:"p" type:"signal"`
	Verbose     []bool         `of:"tini dumb-init" short:"v" type:"bool"`
	Warn        bool           `of:"tini" short:"w"`
	Group       bool           `of:"tini catatonit" short:"g"`
	Expect      []shim.ExitMap `of:"tini" short:"e" type:"expected"`
	SingleChild bool           `of:"dumb-init" short:"c"`
	Rewrite     []shim.Rewrite `of:"dumb-init" short:"r" type:"numbers"`
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
	text = "usage: " + d.usage + "\nThis is lameduck under another name; lameduck --help has its own flags.\n"
	return text, d.helpTo, f.Help
}

// adjust puts the flags and variables into cfg.
func (f *initFlags) adjust(cfg *shim.Config, init string) error {
	variable := func(name string) (value string, set bool) { return cli.Lookup(cfg.Env, name) }
	switch init {
	case "tini":
		if _, set := variable("TINI_SUBREAPER"); set || f.Subreaper {
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
	cfg.LingerGiven = true // the other inits leave with their child
	cfg.PassAll = true
	cfg.Group = cfg.Group || f.Group
	cfg.WarnReaped = f.Warn
	cfg.ParentDeathSignal = cmp.Or(f.Pdeath, cfg.ParentDeathSignal)
	for _, m := range f.Expect { // wins over LAMEDUCK_EXIT_CODE
		cfg.ExitCodes = slices.DeleteFunc(cfg.ExitCodes, func(old shim.ExitMap) bool { return old.From == m.From })
		cfg.ExitCodes = append(cfg.ExitCodes, m)
	}
	for _, r := range f.Rewrite {
		rewrite(cfg, r, true) // the last one counts
	}
	cfg.TERMDropped = len(f.Rewrite) > 0 && slices.Contains(cfg.Rewrites, shim.Rewrite{From: shim.TERM})
	if cfg.Session { // TSTP, TTIN and TTOU do not stop an orphaned group
		for _, from := range []shim.Signal{shim.TSTP, shim.TTIN, shim.TTOU} {
			rewrite(cfg, shim.Rewrite{From: from, To: shim.STOP}, false)
		}
	}
	return nil
}

// rewrite adds r to cfg. If cfg rewrites that signal already, r replaces the older rewrite
// or is left out. dumb-init accepts signals that never arrive (KILL, STOP, CHLD), without effect.
func rewrite(cfg *shim.Config, r shim.Rewrite, replace bool) {
	i := slices.IndexFunc(cfg.Rewrites, func(old shim.Rewrite) bool { return old.From == r.From })
	switch {
	case shim.Uncatchable(r.From) != "":
	case i < 0:
		cfg.Rewrites = append(cfg.Rewrites, r)
	case replace:
		cfg.Rewrites[i] = r
	}
}
