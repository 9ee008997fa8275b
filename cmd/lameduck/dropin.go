package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// dropin is another init whose place lameduck takes. Called by the init's name, lameduck
// takes the init's flags, variables and exit codes, and fills the same Config. LAMEDUCK_*
// variables work there too, so that an init that a runtime injects can hold.
type dropin struct {
	flags interface {
		// answer returns what a flag that only asks prints, and the descriptor to print to.
		// ok reports whether there is such a flag.
		answer() (text string, fd int, ok bool)
		// adjust puts the flags and variables into cfg.
		adjust(cfg *shim.Config) error
	}
	usage string

	// The exit codes for a program that does not exist, may not be executed, or cannot be
	// started for another reason.
	notFound, refused, failed int
}

// exitDropin is the exit code of all inits for a usage error.
const exitDropin = 1

// newDropin returns the drop-in for the name of an init, or nil.
func newDropin(name string) *dropin {
	switch name {
	case "tini", "docker-init":
		return &dropin{new(tini), tiniUsage, exitNotFound, exitRefused, 1}
	case "dumb-init":
		return &dropin{new(dumbInit), dumbInitUsage, 2, 2, 2}
	case "catatonit", "podman-init":
		return &dropin{new(catatonit), catatonitUsage, 1, 1, 1}
	}
	return nil
}

// release is what follows the name of an init in a release, versions, architectures and kinds
// of build: dumb-init_1.2.5_x86_64, tini-static-muslc-amd64, catatonit.x86_64.
const release = `([-_.](v?[0-9]+|static|muslc|musl|linux|x86_64|amd64|arm64|aarch64|arm|armel|armhf|armv6|armv7|` +
	`i386|i686|ppc64el|ppc64le|s390x|mips64el|mips64le|riscv64|loong64|loongarch64))+$`

// dropinFor returns the drop-in for the name that lameduck was called by, or nil.
func dropinFor(argv0 string) *dropin {
	base := filepath.Base(argv0)
	if d := newDropin(base); d != nil || base == "lameduck" {
		return d
	}
	return newDropin(regexp.MustCompile(release).ReplaceAllString(base, ""))
}

// startCode returns the exit code for a program that could not be started.
func (d *dropin) startCode(err *shim.StartError) int {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return d.notFound
	case errors.Is(err, syscall.EACCES):
		return d.refused
	}
	return d.failed
}

// config parses the flags into d, and returns the Config of lameduck's own variables, adjusted by d.
func (d *dropin) config(args, env []string) (shim.Config, error) {
	words, err := cli.ParseOther(d.flags, args)
	if err != nil {
		return shim.Config{}, fmt.Errorf("%w (%s; lameduck's own flags are variables here, LAMEDUCK_DELAY for --delay)",
			err, d.usage)
	}
	// tini's own usage is "PROGRAM -- [ARGS]". As with getopt(3), a "--" that follows another "--" stays.
	_, isTini := d.flags.(*tini)
	if isTini && len(words) > 1 && words[0] != "--" && words[1] == "--" {
		words = slices.Delete(slices.Clone(words), 1, 2)
	}
	command := cli.DropDashes(words)
	if len(command) == 0 {
		return shim.Config{}, fmt.Errorf("no program to run (%s)", d.usage)
	}
	cfg, err := runConfig(append([]string{"--"}, command...), env)
	if err != nil {
		return cfg, err
	}
	cfg.LingerGiven = true // the other inits leave with their child
	cfg.PassAll = true
	return cfg, d.flags.adjust(&cfg)
}

// runConfig returns the configuration of a command line of lameduck itself.
func runConfig(args, env []string) (shim.Config, error) {
	line, err := cli.Parse("run", args, env)
	if err != nil {
		return shim.Config{}, err
	}
	return line.Config()
}
