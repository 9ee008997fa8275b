package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// tini is krallin/tini 0.19, and Docker's docker-init.
type tini struct {
	Help      bool     `short:"h"`
	Version   bool     `name:"version"`
	License   bool     `short:"l"`
	Subreaper bool     `short:"s"`
	Pdeath    *string  `short:"p"`
	Verbose   []bool   `short:"v" type:"bool"`
	Warn      bool     `short:"w"`
	Group     bool     `short:"g"`
	Expect    []string `short:"e" sep:"none"`
}

const tiniUsage = "tini [-hlsvwg] [-p SIGNAL] [-e CODE] [--] PROGRAM [ARG...]"

// answer begins the version as docker info wants, on standard output.
func (t *tini) answer() (string, int, bool) {
	switch {
	case t.Version:
		return "tini version 0.19.0_lameduck-" + version + "\n", syscall.Stdout, true
	case t.Help:
		return helpAs(tiniUsage), syscall.Stdout, true
	}
	return license, syscall.Stdout, t.License
}

func (t *tini) adjust(cfg *shim.Config) error {
	if _, set := cli.Lookup(cfg.Env, "TINI_SUBREAPER"); set || t.Subreaper {
		cfg.Subreaper = shim.Yes
	}
	if _, set := cli.Lookup(cfg.Env, "TINI_KILL_PROCESS_GROUP"); set || t.Group {
		cfg.Group = true
	}
	t.setLevel(cfg)
	cfg.WarnReaped = t.Warn
	for _, text := range t.Expect {
		if err := expectExit(cfg, text); err != nil {
			return err
		}
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

// setLevel sets the log level. TINI_VERBOSITY wins over -v, and as with atoi(3) a word
// that is not a number is 0.
func (t *tini) setLevel(cfg *shim.Config) {
	verbosity := 1 + len(t.Verbose)
	if value, set := cli.Lookup(cfg.Env, "TINI_VERBOSITY"); set {
		verbosity, _ = strconv.Atoi(value)
	}
	cfg.Level = max(cfg.Level, min(shim.Level(verbosity), shim.Debug))
	if verbosity <= 0 {
		cfg.Level = shim.Error
	}
}

// expectExit has an exit code reported as 0, which wins over LAMEDUCK_EXIT_CODE.
func expectExit(cfg *shim.Config, text string) error {
	code, err := strconv.Atoi(strings.TrimSpace("0" + strings.TrimLeft(text, " +")))
	if err != nil || code > 255 {
		return fmt.Errorf("-e %s: give an exit code from 0 to 255", text)
	}
	cfg.ExitCodes = slices.DeleteFunc(cfg.ExitCodes, func(m shim.ExitMap) bool { return m.From == code })
	cfg.ExitCodes = append(cfg.ExitCodes, shim.ExitMap{From: code})
	return nil
}
