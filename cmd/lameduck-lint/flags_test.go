package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
)

// tried are command lines and variables, of which lameduck accepts some and refuses some.
var tried = []string{
	"", "-- hold", "-d5 server", "-gu quiet server --until=x", "--delay 10 -u settled --quiet-for=2 -- server",
	"--until=silence x", "--delay=soon x", "--delay=-1 x", "--dealy=5 x", "-x x", "--delay", "--group=maybe x", "--group=false x", "-s=false x",
	"--grace-period=0 -d 1 x", "--grace-period=500ms -d 1 x", "--grace-period=10 -d 20 x", "--grace-period=10 -d 2 x", "--grace-period=20 -u quiet --kill-after=19 x",
	"-d 20 --max-delay=10 x", "-u quiet --quiet-for=20 --max-delay=10 x", "-u quiet --quiet-for=0 x", "-u quiet --max-silence=0 x", "-d 5 --max-delay=0 x", "--kill-after=0 x",
	"--quiet-for=5 x", "--max-silence=5 x", "--ignore-probes x", "--no-ignore-probes x", "-u quiet --no-ignore-probes x", "-u quiet --ignore-probes=no --no-ignore-probes x", "-u quiet --no-ignore-probes=no x", "-d 1 --ignore-probes=false x", "--max-delay=5 x", "--count-port=80 x", "--ignore-port=80 x", "--ignore-peer=::1 x", "--grace-period=5 x",
	"--grace-period=5 --linger=1 x", "--grace-period=5 --preset=go x", "--health-during=fail x", "--health=:9000 --health-during=fail x", "--health=9000 x", "--health=:9000=:9000 x", "--health=:9000 --health-during=no x",
	"-d 1 --count-port=80,81 x", "-d 1 --count-port=0 x", "-d 1 --ignore-port=web x", "-d 1 --ignore-peer=10.0.0.0/8,fd00::/8,10.0.0.1 x", "-d 1 --ignore-peer=10.0.0.0/33 x", "-d 1 --ignore-peer=::ffff:1.2.3.4/96 x", "-d 1 --ignore-peer=fe80::1%eth0 x",
	"-r TERM:USR1,HUP:0 x", "-r TERM:USR1 -r TERM:INT x", "-r KILL:TERM x", "-r TERM x", "--stop-signal=QUIT,RTMIN+3 x", "--stop-signal=KILL x", "--stop-signal=FOO x", "-p nginx x", "-p ngnix x", "-p auto -- nginx", "-p Apache x",
	"--stop-schedule=USR1/30/TERM -d 1 --grace-period=60 x", "--stop-schedule=30 x", "--stop-schedule=5/forever x", "--stop-schedule=TERM/forever/TERM x", "--stop-schedule=TERM/40/KILL --grace-period=30 -d 1 x", "--kill-after=5 x", "--linger=soon x",
	"-e 143 x", "-e 143:1,1 x", "-e 256 x", "-e 1:x x", "-e 1 -e 1:2 x", "--alive-file= x", "-d 1 --wait-gone=/a --wait-gone=b x", "--wait-gone= x", "--wait-gone=/a --grace-period=1 x", "--on-stop=true x", "--on-stop= x", "--parent-death-signal=KILL x", "--parent-death-signal=x x",
	"--termination-log=none x", "--termination-log= x", "--log-level=info --log-format=text x", "--log-level=loud x", "--log-format=xml x",
	"x LAMEDUCK_DELAY=10", "x LAMEDUCK_DELAY=soon", "-d 1 x LAMEDUCK_DELAY=soon", "x LAMEDUCK_DELAY=", "x LAMEDUCK_UNTIL=quiet LAMEDUCK_IGNORE_PROBES=yes", "x LAMEDUCK_IGNORE_PROBES=maybe LAMEDUCK_UNTIL=quiet", "x LAMEDUCK_IGNORE_PROBES=false LAMEDUCK_DELAY=1",
	"x LAMEDUCK_QUIET_FOR=5", "x LAMEDUCK_GRACE_PERIOD=10 LAMEDUCK_DELAY=30", "x LAMEDUCK_GRACE_PERIOD=10 LAMEDUCK_STOP_SCHEDULE=TERM/9/KILL LAMEDUCK_DELAY=1", "x LAMEDUCK_SUBREAPER=perhaps", "x LAMEDUCK_HEALTH=:9000", "x LAMEDUCK_REWRITE=TERM:INT,INT:TERM",
	"x LAMEDUCK_LINGER=40 LAMEDUCK_GRACE_PERIOD=20 LAMEDUCK_DELAY=1",
}

// TestRefusals: an error of lameduck is a finding with the same text, and there is no other
// finding.
func TestRefusals(t *testing.T) {
	program := lameduck(t)
	refused := 0
	for _, line := range tried {
		var args []word
		var env []variable
		cmd := exec.Command(program, "--explain")
		cmd.Env = []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}
		for _, text := range regexp.MustCompile(` +`).Split(line, -1) {
			if name, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(name, cli.Prefix) {
				env = append(env, variable{name, word{value, 1}})
				cmd.Env = append(cmd.Env, text)
			} else if text != "" {
				args = append(args, word{text, 1})
				cmd.Args = append(cmd.Args, text)
			}
		}
		said, err := cmd.CombinedOutput()
		c := &container{complete: true, words: append([]word{{"/lameduck", 1}}, args...), env: env}
		c.findEntry(false)
		if c.entry.starts {
			c.reportUnusedFlags(c.entry)
		}
		switch want := regexp.MustCompile(`^lameduck: (.*?)( \(lameduck --help-all lists the flags\))?\n`).FindStringSubmatch(string(said)); {
		case err == nil && len(c.found) > 0:
			t.Errorf("%s: lameduck takes it; found %v", line, c.found)
		case err != nil && len(c.found) != 1:
			t.Errorf("%s: lameduck says %s; found %v", line, said, c.found)
		case err != nil:
			refused++
			if got := strings.TrimPrefix(c.found[0].Text, "lameduck does not start: "); got != want[1] {
				t.Errorf("%s:\n%s\nlameduck says\n%s", line, got, want[1])
			}
		}
	}
	if refused < 40 || refused > len(tried)-30 {
		t.Errorf("%d of %d refused", refused, len(tried))
	}
}
