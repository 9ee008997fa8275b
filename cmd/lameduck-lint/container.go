package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
)

// container is a container in a manifest, or the image of a Dockerfile, whose ENTRYPOINT and
// CMD are what command and args are in a manifest.
type container struct {
	Name          word
	Image         string
	Command       []word // nil: the image's
	Args          []word
	Env           []variable
	EnvFrom       []any    `yaml:"envFrom"`
	VolumeMounts  []volume `yaml:"volumeMounts"`
	Ports         []any
	Security      security `yaml:"securityContext"`
	RestartPolicy string   `yaml:"restartPolicy"`
	Lifecycle     struct {
		StopSignal word `yaml:"stopSignal"`
		PreStop    *struct {
			Exec  struct{ Command []word }
			Sleep struct{ Seconds word }
		} `yaml:"preStop"`
	}

	pod   *pod     // nil: of a Dockerfile
	shell []string // of a Dockerfile's SHELL
	more  bool     // variables from elsewhere may be added
	// configured: a file of the server's configuration, which is not read, may be the user's.
	configured bool
	words      []word        // its command, as far as it is known
	hook       []word        // the command of the preStop hook
	sleep      time.Duration // that the hook takes in any case
	left       time.Duration // of the grace period after sleep; 0: unknown, or noneLeft
	noneLeft   bool

	ends      []*command // what its command ends up as, and that of its lameduck
	sleepLine int
	call      *command  // of lameduck as the entrypoint
	hookCall  *command  // of lameduck by the hook
	entry     lameduck  // that call starts, and runs a command
	hold      lameduck  // that hookCall starts, and holds
	refused   []finding // what these two refuse
}

// variable is an environment variable.
type variable struct {
	Name, Value word
	ValueFrom   word `yaml:"valueFrom"`
}

// lint returns the findings for the container.
func (c *container) lint() (found []finding) {
	c.resolve()
	for _, r := range rules {
		r.check(c, func(line int, format string, args ...any) {
			f := finding{Line: cmp.Or(line, c.Name.line, 1), Rule: r.name, Text: oneLine(fmt.Sprintf(format, args...))}
			if !slices.Contains(found, f) {
				found = append(found, f)
			}
		})
	}
	return found
}

// resolve finds the lameducks of the container.
func (c *container) resolve() {
	c.more = c.Image == "" || len(c.EnvFrom) > 0 // without an image: a patch
	c.configured = c.configured || slices.ContainsFunc(c.VolumeMounts, func(m volume) bool {
		return strings.HasPrefix(m.MountPath, "/etc")
	})
	c.words = slices.Concat(c.Command, c.Args)
	if stop := c.Lifecycle.PreStop; stop != nil {
		c.hook = stop.Exec.Command
		if seconds := stop.Sleep.Seconds; seconds.line > 0 {
			c.hook = []word{{"sleep", seconds.line}, seconds}
		}
	}
	c.sleep, c.sleepLine = sleepIn(c.hook)
	if c.pod != nil && !c.pod.patch {
		c.left = c.pod.grace - c.sleep
		c.noneLeft = c.left < time.Second
	}
	c.hookCall = callIn(c.hook)
	c.call = cmp.Or(callIn(c.words), c.assumedCall())
	if c.call != nil && c.call.subcommand == "" {
		c.entry = c.read(c.call)
	}
	if c.hookCall != nil && (c.hookCall.subcommand == "" || c.hookCall.subcommand == "hold") {
		c.hold = c.read(c.hookCall)
	}
	for _, words := range [][]word{c.words, c.entry.command} {
		if list := commandsIn(words); len(list) > 0 && list[len(list)-1].always {
			c.ends = append(c.ends, &list[len(list)-1])
		}
	}
}

// assumedCall returns the call of a lameduck that is the image's entrypoint, or has the name
// of another init, as far as the container tells. Variables may be for a hook that calls
// lameduck.
func (c *container) assumedCall() *command {
	args, first := c.words, word{}
	if len(args) > 0 {
		first = args[0]
	}
	isOurs := func(v variable) bool { return strings.HasPrefix(v.Name.text, cli.Prefix) }
	hasOurs := slices.ContainsFunc(c.Env, isOurs) || strings.Contains(c.Image, "lameduck")
	switch {
	case c.Command == nil && startsWithFlag(args):
	case hasOurs && c.hookCall == nil && (c.Command == nil || initRE.MatchString(first.text)):
		args = slices.Insert(args, 0, word{"--", first.line})
	default:
		return nil
	}
	return &command{program: word{"lameduck", first.line}, args: args}
}
