package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// dropin is another init's way to be called. Under its name lameduck takes that
// init's flags, variables and exit codes, and fills the same Config. LAMEDUCK_*
// variables work there too, so that an init that a runtime injects can hold.
type dropin interface {
	// answer is what a flag that only asks prints, and where, if there is one.
	answer() (text string, onStderr, ok bool)
	// adjust puts the flags and variables into cfg.
	adjust(cfg *shim.Config) error
	// command is the program and its arguments.
	command() []string
	// startCode is the exit code where the program could not be started.
	startCode(err *shim.StartError) int
	usage() string
}

// exitDropin is the exit code of all of them for a usage error.
const exitDropin = 1

// dropinFor finds the drop-in for a name that we were called by, if it is one.
func dropinFor(argv0 string) dropin {
	switch filepath.Base(argv0) {
	case "tini", "tini-static", "docker-init":
		return &tini{}
	case "dumb-init":
		return &dumbInit{}
	case "catatonit", "podman-init":
		return &catatonit{}
	case "pause":
		return &catatonit{isPause: true}
	}
	return nil
}

// runDropin is lameduck under another name.
func runDropin(d dropin, args, env []string) int {
	code, err := startDropin(d, args, env)
	var start *shim.StartError
	switch {
	case err == nil:
		return code
	case errors.As(err, &start):
		complain(err, false)
		return d.startCode(start)
	}
	complain(err, false)
	return exitDropin
}

func startDropin(d dropin, args, env []string) (int, error) {
	if err := readDropin(d, args); err != nil {
		return 0, err
	}
	if text, onStderr, ok := d.answer(); ok {
		return tellOn(onStderr, text), nil
	}
	if c, ok := d.(*catatonit); ok && (c.Pause || c.isPause) {
		return shim.Pause(), nil
	}
	cfg, err := inherit(d, env)
	if err != nil {
		return 0, err
	}
	return shim.Run(cfg)
}

// readDropin parses the command line into d.
func readDropin(d dropin, args []string) error {
	k, err := kong.New(d, kong.NoDefaultHelp())
	if err != nil {
		return err
	}
	abbreviate(k.Model.Flags)
	if _, err := k.Parse(args); err != nil {
		return fmt.Errorf("%w (%s)", err, d.usage())
	}
	return nil
}

// abbreviate lets a long flag be cut short for as long as no other begins so,
// as getopt_long(3) does, down to two letters.
func abbreviate(flags []*kong.Flag) {
	for _, f := range flags {
		for n := 2; n < len(f.Name); n++ {
			begins := func(other *kong.Flag) bool { return other != f && strings.HasPrefix(other.Name, f.Name[:n]) }
			if !slices.ContainsFunc(flags, begins) {
				f.Aliases = append(f.Aliases, f.Name[:n])
			}
		}
	}
}

// inherit is the Config that lameduck's own variables make, adjusted by d.
func inherit(d dropin, env []string) (cfg shim.Config, err error) {
	command := dropDashes(d.command())
	if len(command) == 0 {
		return cfg, fmt.Errorf("no program to run (%s)", d.usage())
	}
	c, t, err := parse(append([]string{"--"}, command...), env)
	if err != nil {
		return cfg, err
	}
	if cfg, err = c.config(t); err != nil {
		return cfg, err
	}
	return cfg, d.adjust(&cfg)
}

// dropDashes takes off the "--" before the command, which kong leaves there.
func dropDashes(command []string) []string {
	if len(command) > 0 && command[0] == "--" {
		return command[1:]
	}
	return command
}

// lookup is an environment variable's value, as getenv(3) finds it.
func lookup(env []string, name string) (value string, set bool) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// tini is krallin/tini 0.19, and Docker's docker-init.
type tini struct {
	Help      bool     `short:"h"`
	Version   bool     `name:"version"`
	Licence   bool     `short:"l"`
	Subreaper bool     `short:"s"`
	Pdeath    *string  `short:"p"`
	Verbose   int      `short:"v" type:"counter"`
	Warn      bool     `short:"w"`
	Group     bool     `short:"g"`
	Expect    []string `short:"e" sep:"none"`

	Command []string `arg:"" optional:"" passthrough:"partial"`
}

// command: tini's own usage is "PROGRAM -- [ARGS]", and getopt(3) takes out
// that "--", but not one that follows another.
func (t *tini) command() []string {
	if len(t.Command) > 1 && t.Command[0] != "--" && t.Command[1] == "--" {
		return slices.Delete(t.Command, 1, 2)
	}
	return t.Command
}

func (t *tini) usage() string { return "tini [-hlsvwg] [-p SIGNAL] [-e CODE] [--] PROGRAM [ARG...]" }

// answer: docker info reads the version from standard output, and wants it to
// begin so.
func (t *tini) answer() (string, bool, bool) {
	switch {
	case t.Version:
		return "tini version 0.19.0_lameduck-" + version + "\n", false, true
	case t.Help:
		return "usage: " + t.usage() + "\nThis is lameduck under tini's name; lameduck --help has its own flags.\n", false, true
	}
	return licence, false, t.Licence
}

// licence is what -l prints.
const licence = "lameduck is licensed under the Apache License, Version 2.0.\n"

func (t *tini) adjust(cfg *shim.Config) error {
	if _, set := lookup(cfg.Env, "TINI_SUBREAPER"); set || t.Subreaper {
		cfg.Subreaper = shim.Yes
	}
	if _, set := lookup(cfg.Env, "TINI_KILL_PROCESS_GROUP"); set || t.Group {
		cfg.Group = true
	}
	verbosity := 1 + t.Verbose
	if value, set := lookup(cfg.Env, "TINI_VERBOSITY"); set {
		verbosity, _ = strconv.Atoi(value) // what is no number is 0, as in atoi(3)
	}
	cfg.Level = max(cfg.Level, min(shim.Level(verbosity), shim.Debug))
	if verbosity <= 0 {
		cfg.Level = shim.Error
	}
	cfg.WarnReaped = t.Warn
	for _, text := range t.Expect {
		code, err := strconv.Atoi(strings.TrimSpace("0" + strings.TrimLeft(text, " +")))
		if err != nil || code > 255 {
			return fmt.Errorf("-e %s: give an exit code from 0 to 255", text)
		}
		cfg.ExitCodes = slices.DeleteFunc(cfg.ExitCodes, func(old shim.ExitMap) bool { return old.From == code })
		cfg.ExitCodes = append(cfg.ExitCodes, shim.ExitMap{From: code})
	}
	if t.Pdeath != nil {
		s, err := shim.ParseSignal(*t.Pdeath)
		if err != nil {
			return fmt.Errorf("-p %s: %w", *t.Pdeath, err)
		}
		cfg.ParentDeathSignal = s
	}
	return nil
}

func (t *tini) startCode(err *shim.StartError) int {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return exitNotFound
	case errors.Is(err, syscall.EACCES):
		return exitRefused
	}
	return 1
}

// dumbInit is Yelp/dumb-init 1.2.5.
type dumbInit struct {
	SingleChild bool     `short:"c"`
	Rewrite     []string `short:"r" sep:"none"`
	Verbose     bool     `short:"v"`
	Help        bool     `short:"h"`
	Version     bool     `short:"V"`

	Command []string `arg:"" optional:"" passthrough:"partial"`
}

func (d *dumbInit) command() []string { return d.Command }

func (d *dumbInit) usage() string { return "dumb-init [-cvhV] [-r FROM:TO]... [--] PROGRAM [ARG...]" }

func (d *dumbInit) answer() (string, bool, bool) {
	if d.Version {
		return "dumb-init v1.2.5 (lameduck " + version + ")\n", true, true
	}
	return "usage: " + d.usage() + "\nThis is lameduck under dumb-init's name; lameduck --help has its own flags.\n", true, d.Help
}

func (d *dumbInit) adjust(cfg *shim.Config) error {
	if value, _ := lookup(cfg.Env, "DUMB_INIT_DEBUG"); value == "1" || d.Verbose {
		cfg.Level = shim.Debug
	}
	value, _ := lookup(cfg.Env, "DUMB_INIT_SETSID")
	cfg.Session = value != "0" && !d.SingleChild
	cfg.StopToo, cfg.Farewell = true, cfg.Session
	for _, text := range d.Rewrite {
		r, err := parseNumbers(text)
		if err != nil {
			return fmt.Errorf("-r %s: %w", text, err)
		}
		rewrite(cfg, r, true) // the last one counts
	}
	if cfg.Session { // an orphaned group does not stop of itself
		for _, from := range []shim.Signal{20, 21, 22} {
			rewrite(cfg, shim.Rewrite{From: from, To: 19}, false)
		}
	}
	return nil
}

// rewrite adds r to cfg; where there is one of the same signal it takes its
// place or not.
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

// parseNumbers reads dumb-init's FROM:TO, with FROM 1 to 31 and TO 0 to 31, as
// its scanf(3) does: after spaces and a sign, and whatever follows. Names are
// taken too. Of signals that never arrive (KILL, STOP, CHLD) it takes a rewrite
// that does nothing: then From is 0.
func parseNumbers(text string) (r shim.Rewrite, err error) {
	found := regexp.MustCompile(`^\s*\+?([0-9]+):\s*\+?([0-9]+)`).FindStringSubmatch(text)
	if found == nil {
		return shim.ParseRewrite(text)
	}
	from, _ := strconv.ParseUint(found[1], 10, 8)
	to, _ := strconv.ParseUint(found[2], 10, 8)
	if from < 1 || from > 31 || to > 31 {
		return r, errors.New("give FROM:TO with FROM from 1 to 31 and TO from 0 to 31")
	}
	r = shim.Rewrite{From: shim.Signal(from), To: shim.Signal(to)}
	if _, err := shim.ParseRewrite(r.From.String() + ":0"); err != nil {
		r.From = 0
	}
	return r, nil
}

func (d *dumbInit) startCode(*shim.StartError) int { return 2 }

// catatonit is openSUSE/catatonit 0.2, and Podman's podman-init; with -P, or
// called pause, it is the process that only keeps a pod's namespaces.
type catatonit struct {
	Group   bool `short:"g"`
	Help    bool `short:"h"`
	Licence bool `short:"L"`
	Version bool `short:"V"`
	Pause   bool `short:"P"`

	PodVersion bool `short:"v"` // the Kubernetes pause container's
	isPause    bool

	Command []string `arg:"" optional:"" passthrough:"partial"`
}

func (c *catatonit) command() []string { return c.Command }

func (c *catatonit) usage() string { return "catatonit [-ghLPV] [--] PROGRAM [ARG...]" }

func (c *catatonit) answer() (string, bool, bool) {
	switch {
	case c.Version:
		return "tini version 0.2.1_catatonit_lameduck-" + version + "\n", false, true
	case c.PodVersion:
		return "pause.c lameduck-" + version + "\n", false, true
	case c.Licence:
		return licence, false, true
	}
	return "usage: " + c.usage() + "\nThis is lameduck under catatonit's name; lameduck --help has its own flags.\n", true, c.Help
}

func (c *catatonit) adjust(cfg *shim.Config) error {
	if _, set := lookup(cfg.Env, "CATATONIT_LOG"); set {
		return errors.New("CATATONIT_LOG is kept for later use: unset it")
	}
	if _, set := lookup(cfg.Env, "CATATONIT_DEBUG"); set {
		cfg.Level = shim.Debug
	}
	cfg.Group = cfg.Group || c.Group
	return nil
}

func (c *catatonit) startCode(*shim.StartError) int { return 1 }
