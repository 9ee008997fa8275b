package shim

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
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
