package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The names of contenders for other code.
const (
	bare = "bare" // no init
	tini = "tini-static"
	goer = "go"
	ours = "lameduck"
	ss   = "ss" // prints sockets
)

// contender is an init, and the words before a command for the init to run the
// command.
type contender struct {
	name   string
	prefix []string
	relays bool // forwards signals, and reaps orphans
}

// with returns the command line for command.
func (c contender) with(command ...string) []string {
	return append(c.prefix[:len(c.prefix):len(c.prefix)], command...)
}

// builder builds programs of the benchmark in dir, from the source tree.
type builder struct{ dir, source string }

// gather finds or builds all contenders.
func (b builder) gather(lameduck string) []contender {
	field := append([]contender{{name: bare, relays: true}}, inits(lameduck)...)
	last := len(field) - 1
	return slices.Insert(field, last, contender{goer, []string{b.program("forkwait", "forkwait", "")}, false})
}

// inits returns the installed inits, and lameduck as the last.
func inits(lameduck string) (field []contender) {
	for _, paths := range [][]string{{tini}, {"dumb-init"}, {"catatonit", "/usr/libexec/podman/catatonit"}} {
		if path := installed(paths); path != "" {
			field = append(field, contender{paths[0], []string{path, "--"}, true})
		} else {
			fmt.Printf("%s is not installed, and left out\n", paths[0])
		}
	}
	lameduck = must(filepath.Abs(lameduck))
	must(os.Stat(lameduck))
	return append(field, contender{ours, []string{lameduck, "--"}, true})
}

func installed(paths []string) string {
	for _, path := range paths {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	return ""
}

// program builds one of the programs beside this package as name and returns the path.
func (b builder) program(folder, name, linker string) string {
	return b.run("cmd/lab", name, "go", "build", "-ldflags=-s -w "+linker, "./internal/bench/"+folder)
}

// sampler builds the tests of the room that samples traffic: a helper in them takes
// samples as a hold does.
func (b builder) sampler() string {
	return b.run("", "sampler", "go", "test", "-c", "-ldflags=-s -w", "./shim/internal/observe")
}

// run builds in a folder of the source tree.
func (b builder) run(folder, name string, words ...string) string {
	path := filepath.Join(b.dir, name)
	last := len(words) - 1
	words = append(words[:last:last], "-trimpath", "-buildvcs=false", "-o", path, words[last])
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = filepath.Join(b.source, folder)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		check(fmt.Errorf("cannot build: %s: %w\n%s", strings.Join(words, " "), err, out))
	}
	return path
}
