package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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

	failed int           // the exit code for a program that cannot be started
	codes  map[error]int // other exit codes, by the reason
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

// config reads the flags, and returns the Config of lameduck's own variables, adjusted by the flags. JSON
// is valid after an error, too.
func (d *dropin) config(args, env []string) (cfg shim.Config, f initFlags, err error) {
	words, faulty := cli.ParseOther(d.name, d.usage, &f, args)
	// tini's own usage is "PROGRAM -- [ARGS]". As with getopt(3), a "--" that follows another "--" stays.
	if d.name == "tini" && len(words) > 1 && words[0] != "--" && words[1] == "--" {
		words = slices.Delete(slices.Clone(words), 1, 2)
	}
	line, _ := cli.Parse("run", append([]string{"--"}, cli.DropDashes(words)...), env) // variables alone
	cfg, err = line.Config()
	switch {
	case faulty != nil:
		err = faulty
	case len(cfg.Command) == 0:
		err = fmt.Errorf("no program to run (%s)", d.usage)
	case err == nil:
		err = f.adjust(&cfg, d.name)
	}
	return cfg, f, err
}
