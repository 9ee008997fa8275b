package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// call is how a page would have lameduck called.
type call struct {
	env   []string
	argv  []string
	grace string // what the orchestrator gives, in seconds, if the page says it
}

// dropins are lameduck's other names.
var dropins = []string{"tini", "tini-static", "docker-init", "dumb-init", "catatonit", "podman-init", "pause"}

// lameduck is the program with args, and nothing but env.
func lameduck(env []string, args ...string) *exec.Cmd { return program("lameduck", env, args...) }

func program(name string, env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, name), args...)
	cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH")}, env...)
	return cmd
}

// check runs c as far as it goes without an orchestrator.
func (c call) check(t *testing.T) {
	t.Helper()
	c.checkGrace(t)
	for _, v := range c.env {
		if !strings.HasPrefix(v, "LAMEDUCK_") {
			t.Errorf("%s is not for lameduck", v)
		}
	}
	name := ""
	if len(c.argv) > 0 {
		name = filepath.Base(c.argv[0])
	}
	switch {
	case name == "lameduck":
		c.checkOurs(t, c.argv[1:])
	case slices.Contains(dropins, name):
		dashes := slices.Index(c.argv, "--")
		if dashes < 0 {
			t.Fatalf("no -- in %q", c.argv)
		}
		succeeds(t, program(name, c.env, append(c.argv[1:dashes:dashes], "--", "true")...))
	case len(c.env) > 0:
		// The image's entrypoint is lameduck, and these are its arguments.
		c.checkOurs(t, c.argv)
	case slices.ContainsFunc(c.argv, func(word string) bool { return strings.HasPrefix(word, "--") }):
		t.Errorf("flags, but not lameduck's: %q", c.argv)
	}
}

// checkOurs explains what args do, or asks the subcommand for its help, which it
// gives where it knows all the flags.
func (c call) checkOurs(t *testing.T, args []string) {
	t.Helper()
	if len(args) == 0 {
		succeeds(t, lameduck(c.env, "--explain"))
		return
	}
	switch args[0] {
	case "hold":
		succeeds(t, lameduck(c.env, append(slices.Clone(args), "--help")...))
		succeeds(t, lameduck(c.env, append([]string{"--explain", "--until=quiet"}, args[1:]...)...))
	case "watch":
		succeeds(t, lameduck(c.env, append(slices.Clone(args), "--help")...))
	case "install":
		if len(args) != 2 {
			t.Errorf("install takes a folder: %q", args)
		}
		succeeds(t, lameduck(c.env, "install", t.TempDir()))
	case "presets":
		succeeds(t, lameduck(c.env, args...))
	default:
		succeeds(t, lameduck(c.env, append([]string{"--explain"}, args...)...))
	}
}

// succeeds runs what should have nothing to say against it, but that it assumes a
// grace period.
func succeeds(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Run(); err != nil {
		t.Errorf("%q with %q: %v\n%s", cmd.Args, cmd.Env[1:], err, &stderr)
	}
	for line := range strings.Lines(stderr.String()) {
		if !strings.Contains(line, "assumed grace period") {
			t.Errorf("%q: %s", cmd.Args, line)
		}
	}
}

var told = regexp.MustCompile(`^(?:--grace-period|LAMEDUCK_GRACE_PERIOD)=(\d+)s?$`)

// checkGrace compares what lameduck is told of the grace period with what it is.
func (c call) checkGrace(t *testing.T) {
	t.Helper()
	for _, word := range slices.Concat(c.argv, c.env) {
		if m := told.FindStringSubmatch(word); m != nil && c.grace != "" && m[1] != c.grace {
			t.Errorf("%s, but the orchestrator gives %s s", word, c.grace)
		}
	}
}
