package main

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// call is a simple command of a script.
type call struct {
	words   []string
	unclear bool // words that only the shell knows are left out, with those behind them
	always  bool // nothing keeps the script from the command
	exec    bool // the command is executed in place of the shell
	line    int
	text    string // as it stands there
}

// A script has less. The expansion of braces takes memory by the square of their number.
const (
	maxLength = 1 << 20
	maxBraces = 2000
)

// unknown stands for what only the shell knows, and for a variable in a manifest.
const unknown = "$()"

// arguments are what "$@" means in a script, as far as it is known. No other parameter is.
type arguments []string

// Get implements [expand.Environ].
func (a arguments) Get(name string) expand.Variable {
	if name == "@" && len(a) > 0 {
		return expand.Variable{Set: true, Kind: expand.Indexed, List: a}
	}
	return expand.Variable{Set: name != "IFS", Kind: expand.String, Str: unknown}
}

// Each implements [expand.Environ].
func (arguments) Each(func(string, expand.Variable) bool) {}

// parse returns the simple commands of a script in the order in which they run, and whether the
// script may handle signals. A script that is not valid has none.
func parse(text string, args []string) (list []call, traps bool) {
	script, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil || len(text) > maxLength || strings.Count(text, "{") > maxBraces {
		return nil, false
	}
	var calls []*syntax.CallExpr
	sure := map[any]bool{}
	markSure(sure, script.Stmts)
	for node := range syntax.Preorder(script) {
		if x, isCall := node.(*syntax.CallExpr); isCall {
			calls = append(calls, x)
		}
	}
	// What is substituted into a command runs before the command.
	slices.SortStableFunc(calls, func(a, b *syntax.CallExpr) int {
		return cmp.Compare(a.End().Offset(), b.End().Offset())
	})
	known := &expand.Config{
		Env:       arguments(args),
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return unknown, nil },
		CmdSubst: func(out io.Writer, _ *syntax.CmdSubst) error {
			_, err := io.WriteString(out, unknown)
			return err
		},
	}
	mayEnd := false
	for _, x := range calls {
		words, err := expand.Fields(known, x.Args...)
		switch {
		case err != nil: // too many words
			words = []string{unknown}
		case len(words) == 0: // an assignment
			continue
		}
		program, line := words[0], int(x.Pos().Line())
		c := call{words: words, always: sure[x] && !mayEnd && !sure[program], exec: program == "exec", line: line,
			text: strings.TrimPrefix(text[x.Pos().Offset():x.End().Offset()], "exec ")}
		switch program {
		case "exec":
			c.words = words[1:]
			mayEnd = mayEnd || len(c.words) > 0
		case "exit", "return": // with another code than 0: of a fault
			mayEnd = mayEnd || len(words) == 1 || words[1] == "0"
			c.words = nil
		case "trap", ".", "source":
			traps = true
		case "shift", "set":
			if program == "shift" || slices.Contains(words, "--") {
				known.Env = arguments(nil)
			}
		}
		if end := slices.IndexFunc(c.words, func(w string) bool { return strings.Contains(w, "$(") }); end >= 0 {
			c.words, c.unclear = c.words[:max(end, 1)], true
		}
		if len(c.words) > 0 {
			list = append(list, c)
		}
	}
	return list, traps
}

// markSure marks the calls that statements make in any case, and the names of functions.
func markSure(sure map[any]bool, list []*syntax.Stmt) {
	for _, s := range list {
		switch x := s.Cmd.(type) {
		case *syntax.CallExpr:
			sure[x] = !s.Background
		case *syntax.FuncDecl:
			sure[x.Name.Value] = true
		case *syntax.Block:
			markSure(sure, x.Stmts)
		case *syntax.BinaryCmd:
			sides := []*syntax.Stmt{x.X}
			if x.Op == syntax.AndStmt {
				sides = append(sides, x.Y)
			}
			if x.Op <= syntax.OrStmt && !s.Background {
				markSure(sure, sides)
			}
		}
	}
}
