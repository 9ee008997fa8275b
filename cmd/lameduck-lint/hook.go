package main

import (
	"cmp"
	"fmt"
	"path"
	"strings"
)

// hookCuts reports hooks that cost requests rather than save them.
func hookCuts(c *container, report reporter) {
	for i, call := range commandsIn(c.hook) {
		text := strings.Join(texts(call.words()), " ")
		for _, cut := range cuts {
			if cut.pattern.MatchString(text) && (i == 0 || !cut.first) {
				report(call.program.line, "the hook's %s %s; write %s", text, cut.fault, cut.remedy)
			}
		}
	}
}

// noShell reports hooks that need a shell, or a program that comes with one, where the image has
// none.
func noShell(c *container, report reporter) {
	if len(c.hook) == 0 || !noShellRE.MatchString(c.Image) || debugRE.MatchString(c.Image) {
		return
	}
	program := c.hook[0]
	if needsRE.MatchString(program.text) && c.Lifecycle.PreStop.Sleep.Seconds.line == 0 && c.volumeAt(path.Clean(program.text)) == "" {
		report(program.line, "the image has no %s, so the hook fails and nothing waits; write preStop: {sleep: {seconds: 15}}",
			program.base())
	}
}

// noPermission: pidfd_getfd(2) is not in the default profiles of Docker and containerd.
func noPermission(c *container, report reporter) {
	if c.pod == nil {
		return
	}
	profile := cmp.Or(c.Security.Seccomp.Type, c.pod.Security.Seccomp.Type)
	for _, l := range []lameduck{c.entry, c.hold} {
		if l.CloseIdle && profile == "RuntimeDefault" && !traceRE.MatchString(fmt.Sprint(c.Security.Capabilities.Add)) {
			report(l.lineOf("close-idle"), "--close-idle closes no connection under the seccomp profile RuntimeDefault; write "+
				"capabilities: {add: [SYS_PTRACE]} in the securityContext")
		}
	}
}
