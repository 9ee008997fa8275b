package main

import (
	"cmp"
	"slices"

	"github.com/lameduck-init/lameduck/shim"
)

// rule is a kind of finding.
type rule struct {
	name, says string
	check      func(*stop, reporter)
}

// rules are in the order of the documentation, and so are the findings on a line.
var rules = []rule{
	{"grace-too-short", "the grace period is 0, or too short for lameduck's flags or a preStop sleep", graceTooShort},
	{"grace-differs", "lameduck is told a different grace period than the pod's, or none and assumes a wrong one",
		graceDiffers},
	{"prestop-adds-up", "a preStop sleep comes on top of lameduck's hold", preStopAddsUp},
	{"hold-twice", "two lameducks where one is enough: in the hook and the entrypoint, or one that runs another",
		holdTwice},
	{"stop-signal", "the stop signal is KILL, another server's, or does not start lameduck's stop", stopSignal},
	{"wrong-preset", "the preset is another server's, or nginx, httpd, haproxy or php-fpm has none", wrongPreset},
	{"no-exec", "a shell, npm, pnpm, yarn or apache2ctl stays in front of a server, or a shell in front of lameduck",
		noExec},
	{"cut-at-term", "nginx, httpd, haproxy or php-fpm gets TERM with nothing before it, or Celery's workers get it",
		cutAtTERM},
	{"nothing-waits", "a container that serves, without a preStop hook or lameduck, in a Deployment, DaemonSet, " +
		"StatefulSet or Rollout", nothingWaits},
	{"hook-cuts", "a hook that drops or refuses requests, such as nginx -s stop", hookCuts},
	{"stops-first", "a database's proxy, Dapr or php-fpm stops before a container that needs it", stopsFirst},
	{"no-shell", "a hook needs a shell, a program or an option that the image does not have", noShell},
	{"no-permission", "--close-idle or --goaway under the seccomp profile RuntimeDefault, which forbids it", noPermission},
	{"no-goaway", "a hold until quiet for gRPC, whose clients keep their connections, without --goaway", noGoaway},
	{"no-command", "lameduck has no command to run, or a container's command is lameduck hold", noCommand},
	{"no-program", "lameduck is not at the path given: nothing installs it there, or the path is a whole command line",
		noProgram},
	{"misplaced-flag", "a flag of lameduck comes after the command, which gets the flag", misplacedFlag},
	{"bad-flag", "lameduck rejects a flag, a value or their combination, warns, does not know a LAMEDUCK_* variable, " +
		"or a hook calls it without hold", badFlag},
}

// judge returns the findings for the stops of a pod, or of an image.
func judge(stops ...*stop) (found []finding) {
	for _, s := range stops {
		for _, r := range rules {
			r.check(s, func(line int, format string, args ...any) {
				text := oneLine(shim.InWords(format, args...))
				f := finding{Line: cmp.Or(line, s.Name.line, 1), Rule: r.name, Text: text}
				if s.pod != nil {
					f.Object, f.Container = s.pod.object, s.Name.text
				}
				if !slices.Contains(found, f) {
					found = append(found, f)
				}
			})
		}
	}
	return found
}
