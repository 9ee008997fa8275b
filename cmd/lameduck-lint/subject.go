package main

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
)

// subject is what a block of rules.txt judges: a stop, and a part of it. A block asks for fields and
// methods of both.
type subject struct {
	*stop
	Of       string
	Call     *command  // that runs, is of the hook, or calls a lameduck
	Lameduck *lameduck // that is called, or has the flag
	Flag     cli.Given
	Text     string // of a finding, or a part of it
	IsFirst  bool   // of the hook: no command before it takes time
	IsLast   bool

	line    int
	decided map[string]bool // rules
}

// subjects returns what the blocks of rules.txt judge.
func (s *stop) subjects() (list []*subject) {
	add := func(a subject) {
		a.stop, a.decided = s, map[string]bool{}
		if a.Call != nil {
			a.line = cmp.Or(a.line, a.Call.Program.line)
		}
		list = append(list, &a)
	}
	add(subject{Of: "container"})
	add(subject{Of: "signal", line: s.GivenSignal.line, Call: cmp.Or(s.Entry.Call, s.Last())})
	add(subject{Of: "grace", line: s.Given.line})
	add(subject{Of: "sleep", line: s.sleepLine})
	for i := range s.ends {
		add(subject{Of: "command", Call: &s.ends[i], IsLast: &s.ends[i] == s.Last()})
	}
	isFirst := true
	for i := range s.hook {
		c := &s.hook[i]
		add(subject{Of: "hook", Call: c, IsFirst: isFirst, IsLast: i == len(s.hook)-1})
		isFirst = isFirst && lookUp("call", c.Line())["quick"] != ""
	}
	for _, l := range []*lameduck{&s.Entry, &s.Hold} {
		if l.Call == nil {
			continue
		}
		add(subject{Of: l.Of, Call: l.Call, Lameduck: l})
		add(subject{Of: "needs", Call: l.Call, Lameduck: l, line: s.Given.line})
		add(subject{Of: "differs", Lameduck: l, line: l.lineOf("grace-period")})
		for _, r := range l.refused {
			add(subject{Of: r.Rule, Lameduck: l, Text: r.Text, line: r.Line})
		}
		for _, g := range l.Flags {
			add(subject{Of: "flag", Lameduck: l, Flag: g, line: l.lineOf(g.Name)})
		}
	}
	return list
}

// fit reports whether the facts are those of a block.
func (a *subject) fit(e entry) bool {
	for field, want := range e {
		path, isNot := strings.CutPrefix(field, "not ")
		path = strings.ReplaceAll(path, " or ", "}}{{.}}{{else with .")
		// A field or a method has a name in capitals.
		if path[0] < 'a' && pattern(want).matches(fill("{{with ."+path+"}}{{.}}{{end}}", a)) == isNot {
			return false
		}
	}
	return true
}

// Lacked reports whether the image lacks the program. The hook's own comes first.
func (a *subject) Lacked() bool {
	own := a.hook[0].Program
	lacks := func(w word) bool {
		return pattern("^("+a.Known["lacks"]+")$").matches(w.Base()) && a.mountAt(w.text).Name == ""
	}
	return lacks(a.Call.Program) && (own == a.Call.Program || !lacks(own))
}

// Closes reports whether the command has a server finish its requests, and close its port before.
func (a *subject) Closes() bool {
	line := a.Call.Line()
	if a.Server != nil && a.Entry.Call == nil {
		line += " of " + a.Server.Name
	}
	return lookUp("call", line)["closes"] != ""
}

func (a *subject) names(p port) bool {
	return slices.Contains(strings.Split(a.Flag.Text, ","), p.Number.text)
}

// NamesNone reports whether the flag names no port of the pod.
func (a *subject) NamesNone() bool {
	return !slices.ContainsFunc(a.Pod.all(), func(c container) bool { return slices.ContainsFunc(c.Ports, a.names) })
}

// Others returns the ports of the container that it does not name.
func (a *subject) Others() []port { return slices.DeleteFunc(slices.Clone(a.Ports), a.names) }

// Mount returns the volume with the lameduck's path.
func (a *subject) Mount() volume {
	m := a.mountAt(a.Call.Program.text)
	v := a.Pod.volume(m.Name)
	v.Name, v.MountPath, v.SubPath = m.Name, path.Clean(m.MountPath), m.SubPath
	return v
}

// IsMount reports whether that volume is mounted at the very path.
func (a *subject) IsMount() bool { return path.Clean(a.Call.Program.text) == a.Mount().MountPath }

// Mounts returns how many containers mount it.
func (a *subject) Mounts() int { return len(a.Pod.mounting(a.Mount().Name)) }

// IsElsewhere reports whether an init container mounts a volume at the path.
func (a *subject) IsElsewhere() bool {
	mounts := func(init container) bool { return init.mountAt(a.Call.Program.text).Name != "" }
	return slices.ContainsFunc(a.Pod.InitContainers, mounts)
}

// ourImages matches the names of images with lameduck alone.
const ourImages pattern = `(^|[/ ])lameduck([:@ \]]|$)`

// Place returns where a volume with a lameduck is mounted.
func (a *subject) Place() string {
	for _, m := range a.VolumeMounts {
		from := fmt.Sprint(a.Pod.volume(m.Name).Image)
		for _, c := range a.Pod.mounting(m.Name) {
			from += " " + c.Image
		}
		if ourImages.matches(from) {
			return path.Clean(m.MountPath)
		}
	}
	return ""
}

// Unfinished reports whether the server does not finish at the stop signal.
func (s *stop) Unfinished() bool { return s.Signal != 0 && s.Signal != s.Server.Schedule[0].Signal }

// Words returns all that the container says.
func (s *stop) Words() string {
	return fmt.Sprint(s.Command, s.Args, s.Env, s.EnvFrom, s.VolumeMounts)
}

// aside matches the names of ports that clients do not use.
const aside pattern = `(?i)metric|monitor|prom|stat|health|probe|debug|pprof|exporter`

// Serves reports whether the container of a pod says that it has clients that are sent to it: by a
// port, or by a probe that connects. Nobody is sent to a pod with the node's network.
func (s *stop) Serves() bool {
	isForClients := func(p port) bool { return !aside.matches(p.Name) }
	probed := len(s.Ports) == 0 && len(s.Readiness) > 0 && s.Readiness["exec"] == nil
	return s.Pod != nil && !s.Pod.HostNetwork && (probed || slices.ContainsFunc(s.Ports, isForClients))
}

// GRPC returns a port that speaks it.
func (s *stop) GRPC() string {
	for _, p := range s.Ports {
		if s.Pod.speaksGRPC(p) {
			return p.Number.text
		}
	}
	return ""
}

// Holding reports whether something lets the container serve for a while before it is stopped.
func (s *stop) Holding() bool { return s.Sleep > 0 || s.Entry.Holds() || s.Hold.Holds() }

// Longest returns how long that is at most, if it is known.
func (s *stop) Longest() time.Duration { return s.Sleep + s.Entry.longest + s.Hold.longest }

// Neighbor returns a container of the pod that goes on serving.
func (s *stop) Neighbor() *stop {
	for _, other := range s.Pod.list {
		if other.Holding() && other.Serves() && other.RestartPolicy == "" {
			return other
		}
	}
	return nil
}

// Lingers reports whether lameduck waits for what a shell leaves behind.
func (s *stop) Lingers() bool { return s.Entry.Linger > 0 || !s.dropIn && !s.Entry.LingerGiven }

// StartsNothing reports whether the stop signal begins no stop of the entrypoint's lameduck.
func (s *stop) StartsNothing() bool {
	return s.Signal != 0 && !slices.Contains(s.Entry.Plan.Starts(), s.Signal)
}

// Misfit reports whether the server does not finish at what the entrypoint's lameduck sends.
func (s *stop) Misfit() bool {
	return !slices.Equal(s.Entry.Plan.FirstSteps(), s.Server.Schedule)
}
