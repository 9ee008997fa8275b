package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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
	// flags are its own flags that do what flags of lameduck's do, by the names of those.
	flags() map[string]string
	// command is the program and its arguments, which words, what follows the flags, are.
	command(words []string) []string
	// startCode is the exit code where the program could not be started.
	startCode(err *shim.StartError) int
	usage() string
}

// exitDropin is the exit code of all of them for a usage error.
const exitDropin = 1

// dropinFor returns the drop-in for the name that we were called by, or nil.
func dropinFor(argv0 string) dropin {
	base := filepath.Base(argv0)
	switch {
	case isReleaseOf(base, "tini"), isReleaseOf(base, "docker-init"):
		return &tini{}
	case isReleaseOf(base, "dumb-init"):
		return &dumbInit{}
	case isReleaseOf(base, "catatonit"), isReleaseOf(base, "podman-init"):
		return &catatonit{}
	case isReleaseOf(base, "pause"):
		return &catatonit{isPause: true}
	}
	return nil
}

// isReleaseOf reports whether base is the name of a program, alone or as releases have
// it, followed by a version, an architecture or a kind of build: dumb-init_1.2.5_x86_64,
// tini-static-muslc-amd64, catatonit.x86_64.
func isReleaseOf(base, name string) bool {
	rest, ok := strings.CutPrefix(base, name)
	if !ok || rest == "" {
		return ok
	}
	parts := strings.Split(releaseSeparators.Replace(rest), "-")
	return parts[0] == "" && !slices.ContainsFunc(parts[1:], isNoReleasePart)
}

// releaseSeparators makes all separators one, and leaves the one in x86_64 out.
var releaseSeparators = strings.NewReplacer("x86_64", "amd64", "_", "-", ".", "-")

func isNoReleasePart(part string) bool {
	_, err := strconv.ParseUint(strings.TrimPrefix(part, "v"), 10, 32)
	return err != nil && !slices.Contains(releaseParts, part)
}

// releaseParts are the words that may follow the name of a program in a release.
var releaseParts = []string{"static", "muslc", "musl", "linux",
	"amd64", "arm64", "aarch64", "arm", "armel", "armhf", "armv6", "armv7", "i386", "386", "i686",
	"ppc64el", "ppc64le", "s390x", "mips64el", "mips64le", "riscv64", "loong64", "loongarch64"}

// runDropin is lameduck under another name.
func runDropin(d dropin, args, env []string) int {
	code, err := startDropin(d, args, env)
	if err == nil {
		return code
	}
	complain(err, asksJSON(env))
	if start := (*shim.StartError)(nil); errors.As(err, &start) {
		return d.startCode(start)
	}
	return exitDropin
}

func startDropin(d dropin, args, env []string) (int, error) {
	words, err := readDropin(d, args)
	if err != nil {
		return 0, err
	}
	if text, onStderr, ok := d.answer(); ok {
		return tellOn(onStderr, text), nil
	}
	if c, ok := d.(*catatonit); ok && (c.Pause || c.isPause) {
		return shim.Pause(), nil
	}
	cfg, err := inherit(d, words, env)
	if err != nil {
		return 0, err
	}
	return shim.Run(cfg)
}

// readDropin parses the flags into d, and returns the words that follow the flags.
func readDropin(d dropin, args []string) (words []string, err error) {
	k, err := kong.New(d, kong.NoDefaultHelp())
	if err != nil {
		return nil, err
	}
	abbreviate(k.Model.Flags)
	flags, words, err := splitCommand(args, k.Model.Flags)
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, d.usage())
	}
	if _, err := k.Parse(flags); err != nil {
		// The parser would suggest long names, which not every init has.
		text, _, _ := strings.Cut(err.Error(), ", did you mean")
		return nil, fmt.Errorf("%s (%s)", text, d.usage())
	}
	return words, nil
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

// inherit is the Config that lameduck's own variables make, adjusted by d. words are
// what follows the flags.
func inherit(d dropin, words, env []string) (cfg shim.Config, err error) {
	command := dropDashes(d.command(words))
	if len(command) == 0 {
		return cfg, fmt.Errorf("no program to run (%s)", d.usage())
	}
	c, t, err := parse(append([]string{"--"}, command...), env)
	if err != nil {
		return cfg, err
	}
	t.spellAsVariables(d.flags())
	if cfg, err = c.config(t); err != nil {
		return cfg, err
	}
	return cfg, d.adjust(&cfg)
}

// dropDashes takes off the "--" before the command.
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
