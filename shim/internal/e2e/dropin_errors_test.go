package e2e

import (
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestDropinAdvice: the advice in a report names lameduck's flags, under any name.
func TestDropinAdvice(t *testing.T) {
	shell := []string{"sh", "-c", "echo ready; sleep 1000; true"}
	for _, c := range []struct{ name, flag string }{{"tini", "--"}, {"catatonit", "--"}, {"dumb-init", "-c"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := []string{"LAMEDUCK_DELAY=0.1", "LAMEDUCK_GRACE_PERIOD=9", "LAMEDUCK_ON_STOP=/no/such"}
			b := bootUnderName(t, c.name, env, append([]string{c.flag}, shell...)...)
			b.out.wait(t, "ready")
			b.child()
			b.signal(sig.TERM)
			b.wantExit(143)
			b.err.wait(t, "until --on-stop has ended")
			b.err.wait(t, "--on-stop (LAMEDUCK_ON_STOP): cannot run")
			if line := b.report(); !strings.HasSuffix(line, "exec the program, or give --group (LAMEDUCK_GROUP)") {
				t.Errorf("%s: last line %q, want advice at its end", c.name, line)
			}
		})
	}
}

// TestDropinErrorsJSON: LAMEDUCK_LOG_FORMAT applies to start errors under an init's name.
func TestDropinErrorsJSON(t *testing.T) {
	for call, code := range map[string]int{
		"tini -- /no/such": 127, "dumb-init /no/such": 2, "catatonit -- /no/such": 1, "tini -x true": 1, "dumb-init --frob": 1, "tini": 1,
		"dumb-init -r 15 true": 1, "LAMEDUCK_DELAY=x tini true": 1, "LAMEDUCK_GROUP=x tini true": 1, "LAMEDUCK_ALIVE_FILE=/no/such/file tini true": 1,
	} {
		t.Run(strings.ReplaceAll(call, "/", " "), func(t *testing.T) {
			t.Parallel()
			env, words := splitEnv(call)
			b := bootUnderName(t, words[0], append(env, "LAMEDUCK_LOG_FORMAT=json"), words[1:]...)
			b.wantExit(code)
			b.wantOneLine(`"level":"error"`)
		})
	}
}
