package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/lameduck-init/lameduck/shim"
)

// nothingWaits reports a container that has clients, and gets its stop signal while they are still
// sent to it. What cut-at-term or stops-first reports is left to them.
func nothingWaits(s *stop, report reporter) {
	if !s.serves() || !s.pod.replaced || s.isOpen() || s.RestartPolicy != "" ||
		s.call != nil || s.Lifecycle.PreStop != nil || s.says(waits) || drains.matches(s.Image) ||
		dropsAtTERM(s.server) && s.signal == shim.TERM || s.server == nil && s.says(mayRunOurs) {
		return
	}
	report(0, "the stop signal comes at once, while clients are still sent to the container; write lifecycle: "+
		"{preStop: {sleep: {seconds: 15}}}, or have lameduck hold (see docs/kubernetes.md)")
}

// says reports whether words or variables of the container match.
func (s *stop) says(p pattern) bool {
	return p.matches(fmt.Sprint(s.Command, s.Args, s.Env, s.EnvFrom))
}

// hookCuts reports hooks that cost requests rather than save them. The stop signal follows a hook
// at once: TERM cuts what a server was about to finish.
func hookCuts(s *stop, report reporter) {
	server, signal := "", "lameduck's" // of the first process
	if s.call == nil {
		signal = s.signal.String()
	}
	if s.call == nil && s.server != nil {
		server = s.server.Name
	}
	for i, call := range s.hook {
		for _, cut := range cuts {
			isCall := (`^(\S*/)?` + cut.call).matches(call.String() + " " + server)
			if isCall && cut.when.matches(fmt.Sprintf("%t %t %s", i == 0, i == len(s.hook)-1, signal)) {
				report(call.program.line, "the hook's %v %s; write %s", &call, cut.fault, cut.remedy)
				break
			}
		}
	}
}

// noShell reports hooks that need a shell, a program or an option that the image does not have.
func noShell(s *stop, report reporter) {
	if s.Lifecycle.PreStop == nil || len(s.Lifecycle.PreStop.Exec.Command) == 0 {
		return
	}
	words := s.Lifecycle.PreStop.Exec.Command // of which the first may be a shell
	hook := append([]command{{program: words[0]}}, s.hook...)
	isKnown := !otherSh.matches(s.Image) && !looks.matches(strings.Join(texts(words), " "))
	lacks := "^(" + s.image.lacks + ")$"
	for _, call := range hook {
		program := call.program
		switch {
		case library(dashImages).matches(s.Image) && s.stays(&call) && prefixed.matches(call.String()):
			report(program.line, "dash takes no signal names with SIG, so the hook's %v fails; leave SIG out", &call)
		case isKnown && lacks.matches(program.base()) && s.mountAt(program.text).Name == "":
			report(program.line, "the image has no %s, so the hook does not do what it should; write preStop: {sleep: "+
				"{seconds: 15}}", program.base())
			return
		}
	}
}

// noPermission: pidfd_getfd(2) is not in the default profiles of Docker and containerd.
func noPermission(s *stop, report reporter) {
	if s.pod == nil {
		return
	}
	isDefault := cmp.Or(s.Security.Seccomp.Type, s.pod.Security.Seccomp.Type) == "RuntimeDefault"
	may := pattern("ALL|SYS_PTRACE").matches(fmt.Sprint(s.Security.Capabilities.Add))
	for _, l := range s.lameducks() {
		flag := "close-idle"
		if len(l.Goaway) > 0 {
			flag = "goaway"
		}
		if (l.CloseIdle || len(l.Goaway) > 0) && isDefault && !may {
			report(l.lineOf(flag), "--%s does nothing under the seccomp profile "+
				"RuntimeDefault; write seccompProfile: {type: Localhost, localhostProfile: lameduck.json} (see "+
				"docs/kubernetes.md), or capabilities: {add: [SYS_PTRACE]}, in the securityContext", flag)
		}
	}
}

// noGoaway reports a port on which clients hardly let go of their connections, unless they are asked to
// leave.
func noGoaway(s *stop, report reporter) {
	for _, l := range s.lameducks() {
		for _, p := range s.Ports {
			tells := len(l.Goaway) > 0 || l.OnStop.Signal != 0 || l.OnStop.Runs()
			if s.pod != nil && l.Until == shim.Quiet && l.outline != nil && !tells && s.pod.speaksGRPC(p) {
				report(l.line, "clients of gRPC keep their connections to a pod that stops; if port %s speaks HTTP/2 "+
					"without TLS, and nothing else, give --goaway=%[1]s", p.Number.text)
				return
			}
		}
	}
}

// stopsFirst reports a container without which another cannot serve for as long as its hook or
// lameduck has it serve.
func stopsFirst(s *stop, report reporter) {
	isHeld, _ := s.isHeld()
	if isHeld || s.call != nil || s.Lifecycle.PreStop != nil || s.RestartPolicy != "" || !servants.matches(s.Image) ||
		s.says(waits) {
		return
	}
	for _, other := range s.beside {
		if isHeld, most := other.isHeld(); isHeld && other.serves() {
			remedy := "make it an init container with restartPolicy: Always, or give it the hook"
			if s.Image == injected {
				remedy = fmt.Sprintf("annotate the pod with %s: %q", daprWaits, most)
			}
			report(s.Name.line, "%s stops at once, up to %s before %s; %s", s.Name.text, most,
				other.Name.text, remedy)
			return
		}
	}
}
