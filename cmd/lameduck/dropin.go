package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// dropin is another init whose place lameduck takes. Called by the init's name, lameduck
// takes the init's flags, variables and exit codes, and fills the same Config. LAMEDUCK_*
// variables work there too, so that an init that a runtime injects can hold.
type dropin interface {
	// answer returns what a flag that only asks prints, and the descriptor to print to.
	// ok reports whether there is such a flag.
	answer() (text string, fd int, ok bool)
	// adjust puts the flags and variables into cfg.
	adjust(cfg *shim.Config) error
	// startCode returns the exit code if the program could not be started.
	startCode(err *shim.StartError) int
	usage() string
}

// exitDropin is the exit code of all inits for a usage error.
const exitDropin = 1

// dropins have the names of the inits.
var dropins = []struct {
	name string
	init func() dropin
}{
	{"tini", func() dropin { return new(tini) }},
	{"docker-init", func() dropin { return new(tini) }},
	{"dumb-init", func() dropin { return new(dumbInit) }},
	{"catatonit", func() dropin { return new(catatonit) }},
	{"podman-init", func() dropin { return new(catatonit) }},
}

// release is what follows the name of an init in a release, versions, architectures and kinds
// of build: dumb-init_1.2.5_x86_64, tini-static-muslc-amd64, catatonit.x86_64.
const release = `^([-_.](v?[0-9]+|static|muslc|musl|linux|x86_64|amd64|arm64|aarch64|arm|armel|armhf|armv6|armv7|` +
	`i386|i686|ppc64el|ppc64le|s390x|mips64el|mips64le|riscv64|loong64|loongarch64))+$`

// dropinFor returns the drop-in for the name that lameduck was called by, or nil.
func dropinFor(argv0 string) dropin {
	for _, d := range dropins {
		rest, ok := strings.CutPrefix(filepath.Base(argv0), d.name)
		if ok && (rest == "" || regexp.MustCompile(release).MatchString(rest)) {
			return d.init()
		}
	}
	return nil
}

// helpAs returns the help under another name.
func helpAs(d dropin) string {
	return "usage: " + d.usage() + "\nThis is lameduck under another name; lameduck --help has its own flags.\n"
}

// runDropin is lameduck under another name.
func runDropin(d dropin, args, env []string) int {
	code, err := startDropin(d, args, env)
	if err == nil {
		return code
	}
	if start := (*shim.StartError)(nil); errors.As(err, &start) {
		complain(err, cli.AsksJSON(env))
		return d.startCode(start)
	}
	err = fmt.Errorf("%w; under this name lameduck's flags are variables, LAMEDUCK_DELAY for --delay", err)
	complain(err, cli.AsksJSON(env))
	return exitDropin
}

func startDropin(d dropin, args, env []string) (int, error) {
	words, err := readDropin(d, args)
	if err != nil {
		return 0, err
	}
	if text, fd, ok := d.answer(); ok {
		return answerOn(fd, text), nil
	}
	cfg, err := inherit(d, words, env)
	if err != nil {
		return 0, err
	}
	return shim.Run(cfg)
}

// readDropin parses the flags into d, and returns the words that follow the flags.
func readDropin(d dropin, args []string) (words []string, err error) {
	words, err = cli.ParseOther(d, args)
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, d.usage())
	}
	return words, nil
}

// inherit returns the Config of lameduck's own variables, adjusted by d. words follow the
// flags.
func inherit(d dropin, words, env []string) (shim.Config, error) {
	if _, isTini := d.(*tini); isTini {
		words = withoutDashes(words)
	}
	command := cli.DropDashes(words)
	if len(command) == 0 {
		return shim.Config{}, fmt.Errorf("no program to run (%s)", d.usage())
	}
	line, err := cli.ParseRun(append([]string{"--"}, command...), env)
	if err != nil {
		return shim.Config{}, err
	}
	cfg, err := line.Config()
	if err != nil {
		return cfg, err
	}
	return cfg, d.adjust(&cfg)
}
