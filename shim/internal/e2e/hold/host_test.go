package hold_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

// hostScript is a container's command, beside which preStop hooks run: a shell that obeys
// lines, beside the server of its arguments, if there are any. What is written to descriptor
// 4 is printed after "hook: "; descriptor 5 is the shell's standard error.
const hostScript = `
mkfifo $D/pipe; sed -u 's/^/hook: /' <$D/pipe & exec 4>$D/pipe 5>&2
if [ $# -gt 0 ]; then sleep 1000 | "$@" & server=$!; else echo ready; fi
while read -r line; do eval "$line"; done`

// hookHost is a container in which a hook runs.
type hookHost struct {
	*box.Box
	start time.Time // of the hook
}

// startHost starts a container, in a network of its own, whose PID 1 is the command of the
// words before, or the shell of hostScript without such words. A server serves at the
// addresses.
func startHost(t *testing.T, s box.Setup, before []string, addresses ...string) *hookHost {
	t.Helper()
	t.Parallel()
	s.Network = box.NewNetwork(t)
	s.Env = append(s.Env, "L="+box.Binary, "D="+t.TempDir())
	words := append(before, "/bin/sh", "-c", hostScript, "host")
	if len(addresses) > 0 {
		words = append(words, box.Helper("catch", addresses...)...)
	}
	b := s.Start(t, words...)
	b.Ready()
	return &hookHost{Box: b}
}

// hook starts a hook: a command line for a shell, in which $L is lameduck. The hook's exit code
// follows its last line.
func (h *hookHost) hook(line string) {
	h.start = time.Now()
	h.Send("{ (export LAMEDUCK_LOG_FORMAT=json; exec " + line +
		") >&4 2>&4 4>&- & echo $! >$D/pid; wait $!; echo exited $? >&4; } &")
}

// signal sends a signal to the hook.
func (h *hookHost) signal(name string) { h.Send("kill -" + name + " $(cat $D/pid)") }

// wantHook waits for the end of the hook, wants this exit code, at this time or up to Slack
// later, ends the container, and wants the reason for the end of the hold on PID 1's standard
// error, where a hook writes too, each line once.
func (h *hookHost) wantHook(code int, at time.Duration, reason string) {
	h.T.Helper()
	end := h.Out.Wait("hook: exited")
	if took := end.At.Sub(h.start); end.Text != fmt.Sprintf("hook: exited %d", code) || took < at || took > at+box.Slack {
		h.T.Errorf("the %v after %v, want %d after %v", end, took, code, at)
	}
	h.Send("exit 0")
	h.WantExit(0)
	stderr := strings.Join(h.Messages(), "\n")
	if reason != "" && (h.Report().Ended != reason || strings.Count(stderr, "TERM ends the wait") != 1) {
		h.T.Errorf("stderr:\n%s\nwant a hold until %s", stderr, reason)
	}
}
