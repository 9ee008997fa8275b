package pages

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/docs/check/internal/podman"
)

// call is a call of lameduck on a page.
type call struct {
	env   []string
	argv  []string
	grace string // the orchestrator's grace period in seconds, or ""
}

// dropins are lameduck's other names.
var dropins = []string{"tini", "tini-static", "docker-init", "dumb-init", "catatonit", "podman-init"}

// lameduck returns a command with env as the whole environment but PATH.
func lameduck(env []string, args ...string) *exec.Cmd { return command("lameduck", env, args...) }

func command(name string, env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, name), args...)
	cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH")}, env...)
	return cmd
}

// exampleImage is the image of Dockerfile.example, with and without a tag or localhost/.
var exampleImage = regexp.MustCompile(`^(localhost/)?haproxy-lameduck(:3\.2)?$`)

// runs adds what an image with lameduck as its entrypoint gives to the call.
func (c *call) runs(image string) {
	switch {
	case exampleImage.MatchString(image):
		c.env = append(c.env, "LAMEDUCK_PRESET=auto", "LAMEDUCK_UNTIL=quiet")
	case image == podman.Release && len(c.argv) == 0:
		c.argv = []string{"lameduck"}
	}
}

// check runs c as far as possible without an orchestrator.
func (c call) check(t *testing.T) {
	t.Helper()
	c.checkGrace(t)
	for _, v := range c.env {
		if !strings.HasPrefix(v, "LAMEDUCK_") {
			t.Errorf("%s is not a variable of lameduck", v)
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
		succeeds(t, command(name, c.env, append(c.argv[1:dashes:dashes], "--", "true")...))
	case len(c.env) > 0:
		// The image's entrypoint is lameduck, and the words are arguments.
		c.checkOurs(t, c.argv)
	case slices.ContainsFunc(c.argv, func(word string) bool { return strings.HasPrefix(word, "--") }):
		t.Errorf("flags, but not lameduck's: %q", c.argv)
	}
}

// checkOurs explains args, or asks a subcommand for help, which an unknown flag prevents.
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

// succeeds runs a command that must succeed, without a warning but that about an assumed
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

var graceFlag = regexp.MustCompile(`^(?:--grace-period|LAMEDUCK_GRACE_PERIOD)=(\d+)s?$`)

// checkGrace compares the grace period in flags and variables with the orchestrator's.
func (c call) checkGrace(t *testing.T) {
	t.Helper()
	for _, word := range slices.Concat(c.argv, c.env) {
		if m := graceFlag.FindStringSubmatch(word); m != nil && c.grace != "" && m[1] != c.grace {
			t.Errorf("%s, but the orchestrator gives %s s", word, c.grace)
		}
	}
}
