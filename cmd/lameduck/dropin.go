package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// dropin is another init whose place lameduck takes. Called by the init's name, lameduck
// takes the init's flags, variables and exit codes, and fills the same Config. LAMEDUCK_*
// variables work there too, so that an init that a runtime injects can hold.
type dropin struct {
	name, alias, usage string
	version            string // of the init, with a place for ours
	versionTo, helpTo  int    // the descriptors that the init prints these to

	// The exit codes for a program that does not exist, may not be executed, or cannot be
	// started for another reason.
	notFound, refused, failed int
}

// exitDropin is the exit code of all inits for a usage error.
const exitDropin = 1

// parts are what the name of an init may have in a release, besides versions: architectures and kinds
// of build, as in tini-static-muslc-amd64 and catatonit.x86_64.
const parts = " static muslc musl linux amd64 arm64 aarch64 arm armel armhf armv6 armv7 i386 i686 ppc64el ppc64le " +
	"s390x mips64el mips64le riscv64 loong64 loongarch64 "

// dropinFor returns the drop-in for the name that lameduck was called by, or nil.
func dropinFor(argv0 string) *dropin {
	name := strings.Replace(filepath.Base(argv0), "x86_64", "amd64", 1)
	for {
		for i, d := range inits {
			if name == d.name || name == d.alias {
				return &inits[i]
			}
		}
		end := strings.LastIndexAny(name, "-_.")
		if end < 0 || !isPart(name[end+1:]) {
			return nil
		}
		name = name[:end]
	}
}

// isPart reports whether a word of a name is one of parts, or of a version: v0, 19.
func isPart(word string) bool {
	_, err := strconv.ParseUint(strings.TrimPrefix(word, "v"), 10, 64)
	return err == nil || strings.Contains(parts, " "+word+" ")
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

// config reads the flags, and returns the Config of lameduck's own variables, adjusted by the flags.
func (d *dropin) config(args, env []string) (cfg shim.Config, f initFlags, err error) {
	words, err := cli.ParseOther(d.name, &f, args)
	if err != nil {
		return cfg, f, fmt.Errorf("%w (%s; lameduck's own flags are variables here, LAMEDUCK_DELAY for --delay)", err, d.usage)
	}
	// tini's own usage is "PROGRAM -- [ARGS]". As with getopt(3), a "--" that follows another "--" stays.
	if d.name == "tini" && len(words) > 1 && words[0] != "--" && words[1] == "--" {
		words = slices.Delete(slices.Clone(words), 1, 2)
	}
	command := cli.DropDashes(words)
	if len(command) == 0 {
		return cfg, f, fmt.Errorf("no program to run (%s)", d.usage)
	}
	cfg, err = runConfig(append([]string{"--"}, command...), env)
	if err != nil {
		return cfg, f, err
	}
	cfg.LingerGiven = true // the other inits leave with their child
	cfg.PassAll = true
	err = f.adjust(&cfg, d.name)
	return cfg, f, err
}

// runConfig returns the configuration of a command line of lameduck itself.
func runConfig(args, env []string) (shim.Config, error) {
	line, err := cli.Parse("run", args, env)
	if err != nil {
		return shim.Config{}, err
	}
	return line.Config()
}
