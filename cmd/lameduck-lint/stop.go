package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// stop is what the stop of a container comes to.
type stop struct {
	*container
	pod    *pod    // nil: of a Dockerfile
	beside []*stop // of the containers of the pod that are stopped at the same time
	image  imageFacts

	signal shim.Signal  // that the container gets; 0: unknown
	runs   []command    // what its command comes to
	last   *command     // what runs in the end, behind lameduck; nil: unknown
	server *shim.Preset // of last; nil: none, or unknown
	call   *command     // of lameduck as the entrypoint
	dropIn bool         // this lameduck has the name of another init
	entry  lameduck     // that call starts, and runs a command

	hook      []command     // what the preStop hook comes to
	hookCall  *command      // of lameduck by the hook
	hold      lameduck      // that hookCall starts, and holds
	sleep     time.Duration // that the hook takes in any case
	sleepLine int
	grace     time.Duration // of the pod
	left      time.Duration // of grace after sleep; 0: unknown, or noneLeft
	noneLeft  bool
}

// stops returns the stops of the containers of the pod, or none if the API server refuses the pod.
func (p *pod) stops() (list []*stop) {
	grace, err := shim.ParseDuration(cmp.Or(p.Grace.text, "30")) // the default, which lameduck assumes too
	if err != nil {
		return nil
	}
	notes := p.meta.Annotations
	if dapr := notes["dapr.io/enabled"]; dapr.text == "true" && notes[daprWaits].line == 0 {
		p.Containers = append(p.Containers, container{Name: word{"daprd", dapr.line}, Image: injected})
	}
	all := slices.Concat(p.Containers, p.InitContainers)
	for _, c := range all {
		p.patch = p.patch || p.Grace.line == 0 && c.Image == ""
	}
	for i := range all {
		if i < len(p.Containers) || all[i].RestartPolicy == "Always" {
			list = append(list, newStop(&all[i], p, grace))
		}
	}
	for _, s := range list {
		s.beside = list[:len(p.Containers)]
	}
	return list
}

// newStop returns the stop of a container.
func newStop(c *container, p *pod, grace time.Duration) *stop {
	s := &stop{container: c, pod: p, grace: grace}
	words := slices.Concat(c.Command, c.Args)
	s.runs = c.commandsIn(words)
	if hook := c.Lifecycle.PreStop; hook != nil {
		s.hook = c.commandsIn(hook.Exec.Command)
		if path := hook.HTTPGet.Path; path.line > 0 {
			s.hook = []command{{program: word{"httpGet", path.line}, args: []word{path}}}
		}
		if seconds := hook.Sleep.Seconds; seconds.line > 0 {
			s.hook = c.commandsIn([]word{{"sleep", seconds.line}, seconds})
		}
	}
	s.sleep, s.sleepLine = sleepIn(s.hook)
	if p != nil && !p.patch {
		s.left = grace - s.sleep
		s.noneLeft = s.left < time.Second
	}
	s.hookCall = callIn(s.hook)
	s.call = cmp.Or(callIn(s.runs), s.assumedCall(words))
	if s.call != nil && s.call.subcommand == "" {
		s.entry = c.lameduckIn(s.call, "run", "lameduck does not start", s.left)
	}
	if s.hookCall != nil && (s.hookCall.subcommand == "" || s.hookCall.subcommand == "hold") {
		s.hold = c.lameduckIn(s.hookCall, "hold", "lameduck hold holds without it, and fails", s.left)
	}
	s.image = factsOf(c.Image)
	ends := s.runs
	if s.entry.line > 0 {
		ends = c.commandsIn(s.entry.command)
	}
	if i := len(ends) - 1; i >= 0 && ends[i].always {
		s.last = &ends[i]
		s.server = serverIn(s.last)
	} else if len(words) == 0 {
		s.server = serverIn(&command{program: word{text: s.image.program}})
	}
	s.signal, _ = shim.ParseSignal(cmp.Or(c.Lifecycle.StopSignal.text, s.image.signal))
	return s
}

// assumedCall returns the call of a lameduck that is the image's entrypoint, or has the name
// of another init, as far as the container tells. Variables may be for a hook that calls
// lameduck.
func (s *stop) assumedCall(args []word) *command {
	first := word{}
	if len(args) > 0 {
		first = args[0]
	}
	isOurs := func(v variable) bool { return strings.HasPrefix(v.Name.text, cli.Prefix) }
	hasOurs := s.hookCall == nil && (slices.ContainsFunc(s.Env, isOurs) || strings.Contains(s.Image, "lameduck"))
	s.dropIn = hasOurs && s.Command != nil && inits.matches(first.text)
	switch {
	case s.Command == nil && startsWithFlag(args):
	case s.dropIn || hasOurs && s.Command == nil:
		args = slices.Insert(args, 0, word{"--", first.line})
	default:
		return nil
	}
	return &command{program: word{"lameduck", first.line}, args: args}
}

// lameducks returns those that the container may run.
func (s *stop) lameducks() []*lameduck { return []*lameduck{&s.entry, &s.hold} }

// serves reports whether the container of a pod says that it has clients that are sent to it: by a
// port, or by a probe that connects. Nobody is sent to a pod with the node's network.
func (s *stop) serves() bool {
	isForClients := func(p port) bool { return !aside.matches(p.Name) }
	probed := len(s.Ports) == 0 && len(s.Readiness) > 0 && s.Readiness["exec"] == nil
	return s.pod != nil && !s.pod.HostNetwork && (probed || slices.ContainsFunc(s.Ports, isForClients))
}

// isHeld reports whether something lets the container serve for a while before it is stopped, and
// for how long at most, if that is known.
func (s *stop) isHeld() (held bool, most time.Duration) {
	most = s.sleep
	for _, l := range s.lameducks() {
		if l.outline != nil {
			most += l.outline.MaxHold
		}
		held = held || l.Holds()
	}
	return held || s.sleep > 0, most
}

// serverIn returns the preset of the server that a command runs, or nil.
func serverIn(c *command) *shim.Preset {
	outline, err := shim.Review(shim.Config{Command: texts(c.words()), Preset: shim.AutoPreset})
	if err != nil || controls.matches(c.String()) {
		return nil
	}
	return outline.Preset
}

// stays reports whether a shell stays in front of a command, if an sh is dash.
func (s *stop) stays(c *command) bool {
	return c.file || (c.shell == "sh" || c.shell == "dash") && !otherSh.matches(s.Image)
}
