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

// answer returns what a flag that only asks prints, or "", and the descriptor to print to.
func (d *dropin) answer(f *initFlags) (text string, fd int) {
	switch {
	case f.Version:
		return fmt.Sprintf(d.version, version), d.versionTo
	case f.License || f.LicenseText:
		return "lameduck is licensed under the Apache License, Version 2.0.\n", syscall.Stdout
	case f.Help:
		return "usage: " + d.usage + "\nThis is lameduck under another name; lameduck --help has its own flags.\n", d.helpTo
	}
	return "", 0
}

// adjust puts the flags and variables into cfg.
func (f *initFlags) adjust(cfg *shim.Config, init string) error {
	isSet := func(name string) bool {
		_, set := cli.Lookup(cfg.Env, name)
		return set
	}
	switch init {
	case "tini":
		if f.Subreaper || isSet("TINI_SUBREAPER") {
			cfg.Subreaper = shim.Yes
		}
		f.Group = f.Group || isSet("TINI_KILL_PROCESS_GROUP")
		verbosity := 1 + len(f.Verbose)
		if value, set := cli.Lookup(cfg.Env, "TINI_VERBOSITY"); set { // wins over -v; as with atoi(3), a word is 0
			verbosity, _ = strconv.Atoi(value)
		}
		cfg.Level = max(cfg.Level, min(shim.Level(verbosity), shim.Debug))
		if verbosity <= 0 {
			cfg.Level = shim.Error
		}
	case "dumb-init":
		if len(f.Verbose) > 0 || slices.Contains(cfg.Env, "DUMB_INIT_DEBUG=1") {
			cfg.Level = shim.Debug
		}
		cfg.Session = !f.SingleChild && !slices.Contains(cfg.Env, "DUMB_INIT_SETSID=0")
		cfg.StopSelfOnTSTP, cfg.TermGroup = true, cfg.Session
		cfg.ResetSignals, cfg.SameGroup = true, !cfg.Session && !cfg.Group
		if cfg.Subreaper == shim.Auto && cfg.Linger == 0 { // to linger is to wait for orphans
			cfg.Subreaper = shim.No
		}
	case "catatonit":
		if isSet("CATATONIT_LOG") {
			return errors.New("CATATONIT_LOG is reserved: unset it")
		}
		if isSet("CATATONIT_DEBUG") {
			cfg.Level = shim.Debug
		}
	}
	cfg.LingerGiven = true // the other inits leave with their child
	cfg.PassAll = true
	cfg.Group = cfg.Group || f.Group
	cfg.WarnReaped = f.Warn
	cfg.ParentDeathSignal = cmp.Or(f.Pdeath, cfg.ParentDeathSignal)
	for _, m := range f.Expect { // wins over LAMEDUCK_EXIT_CODE
		isSame := func(old shim.ExitMap) bool { return old.From == m.From }
		cfg.ExitCodes = append(slices.DeleteFunc(cfg.ExitCodes, isSame), m)
	}
	f.rewrite(cfg)
	return nil
}

// rewrite adds the rewrites of the flags, each of which wins over LAMEDUCK_REWRITE and over an earlier one,
// and those of a session of its own, which do not.
func (f *initFlags) rewrite(cfg *shim.Config) {
	list := f.Rewrite
	if cfg.Session { // TSTP, TTIN and TTOU do not stop an orphaned group
		for _, from := range []shim.Signal{shim.TSTP, shim.TTIN, shim.TTOU} {
			list = append(list, shim.Rewrite{From: from, To: shim.STOP})
		}
	}
	for n, r := range list {
		i := slices.IndexFunc(cfg.Rewrites, func(old shim.Rewrite) bool { return old.From == r.From })
		switch {
		case shim.Uncatchable(r.From) != "": // KILL, STOP and CHLD, which dumb-init accepts, without effect
		case i < 0:
			cfg.Rewrites = append(cfg.Rewrites, r)
		case n < len(f.Rewrite):
			cfg.Rewrites[i] = r
		}
	}
	dropped := shim.Rewrite{From: shim.TERM}
	cfg.TERMDropped = slices.Contains(f.Rewrite, dropped) && slices.Contains(cfg.Rewrites, dropped)
}
