package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The contenders that are referred to by name. Bare is no init at all: the
// command itself.
const (
	bare = "bare"
	tini = "tini-static"
	goer = "go"
	ours = "lameduck"
	ss   = "ss" // which looks at sockets
)

// contender is an init, and what to put before a command so that it runs it.
type contender struct {
	name   string
	prefix []string
	relays bool // passes signals on, and reaps orphans
}

// with is the command line that runs command.
func (c contender) with(command ...string) []string {
	return append(c.prefix[:len(c.prefix):len(c.prefix)], command...)
}

// gather finds or builds all that takes part.
func gather(dir, lameduck string) []contender {
	lameduck = must(filepath.Abs(lameduck))
	must(os.Stat(lameduck))
	field := []contender{{name: bare, relays: true}}
	for _, paths := range [][]string{{tini}, {"dumb-init"}, {"catatonit", "/usr/libexec/podman/catatonit"}} {
		if path := installed(paths); path != "" {
			field = append(field, contender{paths[0], []string{path, "--"}, true})
		} else {
			fmt.Printf("%s is not installed, and left out\n", paths[0])
		}
	}
	return append(field, contender{goer, []string{build(dir, "forkwait", "forkwait")}, false},
		contender{ours, []string{lameduck, "--"}, true})
}

func installed(paths []string) string {
	for _, path := range paths {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	return ""
}

// build makes one of the programs that are here, with the flags that lameduck
// is built with, and is its path.
func build(dir, from, name string, flags ...string) string {
	return compile(filepath.Join(dir, name), "build", module+"testdata/bench/"+from, flags)
}

// buildLooker makes the tests of lameduck's main room: one of their helpers takes
// looks as a hold does.
func buildLooker(dir string) string {
	return compile(filepath.Join(dir, "looker"), "test", module+"shim/internal/observe", nil, "-c")
}

const module = "github.com/lameduck-init/lameduck/"

func compile(path, command, what string, link []string, flags ...string) string {
	flags = append([]string{command, "-trimpath", "-buildvcs=false", "-o", path}, flags...)
	cmd := exec.Command("go", append(flags, "-ldflags="+strings.Join(append(link, "-s", "-w"), " "), what)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	check(cmd.Run())
	return path
}
