package shim

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

func TestSpelling(t *testing.T) {
	s := Spelling{"until": "LAMEDUCK_UNTIL", "group": "-g", "max-delay": "LAMEDUCK_MAX_DELAY", "parent-death-signal": "-p"}
	for text, want := range map[string]string{
		"":                              "",
		"a - b -- c --":                 "a - b -- c --",
		"see --until=quiet":             "see LAMEDUCK_UNTIL=quiet",
		"--until, --max-delay: --until": "LAMEDUCK_UNTIL, LAMEDUCK_MAX_DELAY: LAMEDUCK_UNTIL",
		"exec, or --group":              "exec, or -g",
		"--parent-death-signal=%v: %w":  "-p %v: %w",
		"--die-on-term, --untilt":       "--die-on-term, --untilt",
		"---until":                      "---until",
	} {
		if got := s.In(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := Spelling(nil).In(text); got != text {
			t.Errorf("%q becomes %q under lameduck's own name", text, got)
		}
	}
}

// TestMessagesAreSpelled: every message that names a flag goes through the spelling. In
// caveats.go and presets.go are texts that setPreset spells; --explain exists under
// lameduck's own name only.
func TestMessagesAreSpelled(t *testing.T) {
	spelling := []string{"errorf", "warn", "log", "spell", "In"}
	flag := regexp.MustCompile(`--[a-z]`)
	seen := 0
	for path, file := range sources(t) {
		if !strings.HasPrefix(path, "shim/") || slices.Contains([]string{"shim/caveats.go", "shim/presets.go", "shim/explain.go"}, path) {
			continue
		}
		spelled := map[ast.Node]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && slices.Contains(spelling, calledName(call)) {
				for _, arg := range call.Args {
					ast.Inspect(arg, func(n ast.Node) bool { spelled[n] = true; return true })
				}
			}
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if text, _ := strconv.Unquote(lit.Value); flag.MatchString(text) {
				seen++
				if !spelled[lit] && path != "shim/internal/stop/gate.go" { // the announcement spells it
					t.Errorf("%s: %q is not spelled", path, text)
				}
			}
			return true
		})
	}
	if seen < 20 {
		t.Errorf("only %d messages name a flag", seen)
	}
}

// calledName is the name of the function or method that is called.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// TestDropinAdvice: what a report advises can be done under the name of the init.
func TestDropinAdvice(t *testing.T) {
	shell := []string{"sh", "-c", "echo ready; sleep 1000; true"}
	for _, c := range []struct{ name, flag, want string }{
		{"tini", "--", "exec, or -g"}, {"catatonit", "--", "exec, or -g"}, {"dumb-init", "-c", "exec, or LAMEDUCK_GROUP=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := []string{"LAMEDUCK_DELAY=0.1", "LAMEDUCK_GRACE_PERIOD=9", "LAMEDUCK_ON_STOP=/no/such"}
			b := bootAs(t, c.name, env, append([]string{c.flag}, shell...)...)
			b.out.wait(t, "ready")
			b.child()
			b.signal(sig.TERM)
			b.wants(143)
			b.err.wait(t, "until LAMEDUCK_ON_STOP has ended")
			b.err.wait(t, "LAMEDUCK_ON_STOP: cannot run")
			if said := b.err.all(); !strings.HasSuffix(said[len(said)-1].text, c.want) {
				t.Errorf("%s: it says %v, want %q", c.name, said, c.want)
			}
		})
	}
}

// TestDropinErrorsJSON: LAMEDUCK_LOG_FORMAT holds for what keeps an init from starting.
func TestDropinErrorsJSON(t *testing.T) {
	for call, code := range map[string]int{
		"tini -- /no/such": 127, "dumb-init /no/such": 2, "catatonit -- /no/such": 1, "tini -x true": 1, "dumb-init --frob": 1, "tini": 1,
		"dumb-init -r 15 true": 1, "LAMEDUCK_DELAY=x tini true": 1, "LAMEDUCK_GROUP=x tini true": 1, "LAMEDUCK_ALIVE_FILE=/no/such/file tini true": 1,
	} {
		t.Run(strings.ReplaceAll(call, "/", " "), func(t *testing.T) {
			t.Parallel()
			env, words := splitEnv(call)
			b := bootAs(t, words[0], append(env, "LAMEDUCK_LOG_FORMAT=json"), words[1:]...)
			b.wants(code)
			if said := b.err.all(); len(said) != 1 || !strings.Contains(said[0].text, `"level":"error"`) {
				t.Errorf("it says %v", said)
			}
		})
	}
}
