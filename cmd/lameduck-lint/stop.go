package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// stop is what the stop of a container comes to. What is exported, rules.txt may ask for.
type stop struct {
	*container
	Pod      *pod // nil: of a Dockerfile
	Platform entry
	object   string // of the pod

	Known       entry // of the image and the server
	GivenSignal word
	Signal      shim.Signal  // that the container gets; 0: unknown
	Server      *shim.Preset // of what runs in the end; nil: none, or unknown
	ends        []command    // what runs in the end, behind lameduck
	hook        []command    // what the preStop hook comes to
	Entry       lameduck     // of the container
	Hold        lameduck     // of the hook
	dropIn      bool         // the entrypoint's lameduck has the name of another init

	Given     word          // the grace period as it stands
	grace     time.Duration // what that means
	Sleep     time.Duration // of grace, that the hook takes in any case
	sleepLine int
	left      time.Duration // of grace after the sleep, less than a second if that is too long; 0: unknown
}

// stops returns the stops of the containers of the pod, or none if the platform refuses the pod.
func (p *pod) stops() (list []*stop) {
	notes := p.meta.Annotations
	if dapr := notes["dapr.io/enabled"]; dapr.text == "true" && notes["dapr.io/block-shutdown-duration"].line == 0 {
		p.Containers = append(p.Containers, container{Name: word{"daprd", dapr.line}, Image: "daprd"})
	}
	for _, c := range p.all() {
		p.patch = p.patch || p.Grace.line == 0 && c.Image == "" && p.platform["names"] == ""
	}
	for i, c := range p.all() {
		s := &stop{container: &c, Pod: p, Platform: p.platform, object: p.object, Given: cmp.Or(c.Grace, p.Grace)}
		grace := p.platform["default"]
		if s.Given.line > 0 {
			grace = s.Given.text + p.platform["unit"]
		}
		var err error
		s.grace, err = shim.ParseDuration(grace)
		if err == nil && (i < len(p.Containers) || c.RestartPolicy == "Always") {
			list = append(list, s.run())
		}
	}
	p.list = list
	return list
}

// run sees what runs in the container, and what is in its way.
func (s *stop) run() *stop {
	s.Known = lookUp("image", s.Image)
	words := slices.Concat(s.Command, s.Args)
	if program := s.Known["program"]; len(words) == 0 && program != "" {
		words = []word{{text: program}}
	}
	s.ends = s.commandsIn(words)
	if hook := s.Lifecycle.PreStop; hook != nil {
		words := hook.Exec.Command
		switch path, seconds := hook.HTTPGet.Path, hook.Sleep.Seconds; {
		case path.line > 0:
			words = []word{{"httpGet", path.line}, path}
		case seconds.line > 0:
			words = []word{{"sleep", seconds.line}, seconds}
		}
		s.hook = s.commandsIn(words)
		if len(words) > 0 && shells.matches(words[0].text) {
			s.hook = slices.Insert(s.hook, 0, command{Program: words[0]})
		}
	}
	for _, c := range s.hook {
		if c.always && c.Program.Base() == "sleep" && len(c.args) > 0 {
			length, _ := shim.ParseDuration(c.args[0].text)
			s.Sleep, s.sleepLine = s.Sleep+length, c.args[0].line
		}
	}
	if s.Pod != nil && !s.Pod.patch {
		s.left = max(s.grace-s.Sleep, 1)
	}
	s.Hold = s.newLameduck(callIn(s.hook), "hold", "lameduck hold holds without it, and fails")
	call := cmp.Or(callIn(s.ends), s.assumedCall(words))
	s.Entry = s.newLameduck(call, "", "lameduck does not start")
	if call != nil {
		s.ends = s.commandsIn(s.Entry.command)
	}
	s.GivenSignal = cmp.Or(s.Lifecycle.StopSignal, s.StopSignal)
	s.Signal, _ = shim.ParseSignal(cmp.Or(s.GivenSignal.text, s.Known["signal"]))
	if last := s.Last(); last != nil {
		s.Server = last.Server()
	}
	if s.Server != nil {
		maps.Copy(s.Known, lookUp("server", s.Server.Name))
	}
	return s
}

// Last returns the command that the others lead to, or nil if it is not known.
func (s *stop) Last() *command {
	if i := len(s.ends) - 1; i >= 0 && s.ends[i].always {
		return &s.ends[i]
	}
	return nil
}

// ourWords matches an image or variables of lameduck.
const ourWords pattern = `^[^ \[]*lameduck|\{LAMEDUCK_`

// assumedCall returns the call of a lameduck that is the image's entrypoint, or has the name
// of another init, as far as the container tells. Variables may be for a hook that calls
// lameduck.
func (s *stop) assumedCall(args []word) *command {
	first := append(slices.Clone(args), word{})[0]
	hasOurs := s.Hold.Call == nil && ourWords.matches(fmt.Sprint(s.Image, s.Env))
	s.dropIn = hasOurs && s.Command != nil && inits.matches(first.text)
	switch {
	case s.Command == nil && areOurs(args):
	case s.dropIn || hasOurs && s.Command == nil && s.Known["bare"] == "":
		args = slices.Insert(args, 0, word{"--", first.line})
	default:
		return nil
	}
	return &command{Program: word{"lameduck", first.line}, args: args}
}
