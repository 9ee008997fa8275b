package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// hookCuts reports hooks that cost requests rather than save them. The stop signal follows a hook
// at once: TERM cuts what a server was about to finish.
func hookCuts(s *stop, report reporter) {
	server := "" // the first process
	if s.server != nil && s.call == nil {
		server = s.server.Name
	}
	for i, call := range s.hook {
		for _, cut := range cuts {
			applies := (i == 0 || !cut.first) && (i == len(s.hook)-1 || !cut.last) && (s.signal.String() == "TERM" || !cut.term)
			if applies && regexp.MustCompile(`^(\S*/)?`+cut.call).MatchString(call.String()+" "+server) {
				report(call.program.line, "the hook's %v %s; write %s", &call, cut.fault, cut.remedy)
				break
			}
		}
	}
}

// noShell reports hooks that need a shell, a program or an option that the image does not have.
func noShell(s *stop, report reporter) {
	if s.Lifecycle.PreStop == nil || s.Lifecycle.PreStop.Exec.Command == nil {
		return
	}
	words := s.Lifecycle.PreStop.Exec.Command
	script := strings.Join(texts(words), " ")
	words = words[:1:1]
	for _, call := range s.hook {
		words = append(words, call.program)
		if dashRE.MatchString(s.Image) && s.stays(&call) && prefixedRE.MatchString(call.String()) {
			report(call.program.line, "dash takes no signal names with SIG, so the hook's %v fails; leave SIG out", &call)
		}
	}
	i := slices.IndexFunc(lacking, func(l lack) bool { return l.image.MatchString(s.Image) })
	lacks := func(w word) bool { return lacking[i].programs.MatchString(w.base()) && s.volumeAt(w.text) == "" }
	if i >= 0 && !looksRE.MatchString(script) {
		if at := slices.IndexFunc(words, lacks); at >= 0 {
			report(words[at].line, "the image has no %s, so the hook does not do what it should; write preStop: {sleep: "+
				"{seconds: 15}}", words[at].base())
		}
	}
}

// noPermission: pidfd_getfd(2) is not in the default profiles of Docker and containerd.
func noPermission(s *stop, report reporter) {
	if s.pod == nil {
		return
	}
	profile := cmp.Or(s.Security.Seccomp.Type, s.pod.Security.Seccomp.Type)
	for _, l := range []lameduck{s.entry, s.hold} {
		if l.CloseIdle && profile == "RuntimeDefault" && !traceRE.MatchString(fmt.Sprint(s.Security.Capabilities.Add)) {
			report(l.lineOf("close-idle"), "--close-idle closes no connection under the seccomp profile RuntimeDefault; write "+
				"capabilities: {add: [SYS_PTRACE]} in the securityContext")
		}
	}
}

// stopsFirst reports a container without which another cannot serve for as long as its hook or
// lameduck has it serve.
func stopsFirst(s *stop, report reporter) {
	isHeld, _ := s.isHeld()
	if isHeld || s.call != nil || s.Lifecycle.PreStop != nil || s.RestartPolicy != "" || !servantRE.MatchString(s.Image) ||
		waitsRE.MatchString(fmt.Sprint(s.Command, s.Args, s.Env, s.EnvFrom)) {
		return
	}
	for _, other := range s.beside {
		if isHeld, most := other.isHeld(); isHeld && len(other.Ports) > 0 {
			report(s.Name.line, "%s stops at once, up to %s before %s; make it an init container with restartPolicy: Always, "+
				"or give it the hook", s.Name.text, seconds(most), other.Name.text)
			return
		}
	}
}
