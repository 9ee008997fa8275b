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

// TestMessagesAreSpelled: every message that names a flag goes through the spelling, so that
// drop-in names get advice that they can follow. The planner spells the texts of room
// preset, and --explain exists only under lameduck's own name.
func TestMessagesAreSpelled(t *testing.T) {
	spelling := []string{"errorf", "warn", "log", "spell", "In"}
	flag := regexp.MustCompile(`--[a-z]`)
	seen := 0
	for path, file := range sources(t) {
		if !strings.HasPrefix(path, "shim/") || path == "shim/explain.go" || strings.HasPrefix(path, "shim/internal/preset/") {
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
