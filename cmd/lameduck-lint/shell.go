package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// unknown is a word that only the shell knows.
var unknown = word{text: "$()"}

// arguments are what "$@" means in a script, as far as it is known. No other parameter is.
type arguments []string

// Get implements [expand.Environ].
func (a arguments) Get(name string) expand.Variable {
	switch {
	case name == "IFS":
		return expand.Variable{}
	case name == "@" && len(a) > 0:
		return expand.Variable{Set: true, Kind: expand.Indexed, List: a}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: unknown.text}
}

// Each implements [expand.Environ].
func (arguments) Each(func(string, expand.Variable) bool) {}

// inScript returns the commands of a script in the order in which they run, or none if the script is
// not valid. In front of a command is inner, or outer if the command is executed in place of the shell.
func (c *container) inScript(outer, inner front, text string, line int, args []word) (list []command) {
	script, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	var calls []*syntax.CallExpr
	sure := markSure(map[any]bool{}, script.Stmts)
	for node := range syntax.Preorder(script) {
		switch x := node.(type) {
		case *syntax.CallExpr:
			calls = append(calls, x)
		case *syntax.FuncDecl:
			sure[x.Name.Value] = true
		}
	}
	// What is substituted into a command runs before the command.
	slices.SortStableFunc(calls, func(a, b *syntax.CallExpr) int { return cmp.Compare(a.End().Offset(), b.End().Offset()) })
	known := &expand.Config{Env: arguments(texts(args)), CmdSubst: func(out io.Writer, _ *syntax.CmdSubst) error {
		_, err := io.WriteString(out, unknown.text)
		return err
	}}
	mayEnd, mayTrap := false, false
	for _, call := range calls {
		fields, err := expand.Fields(known, call.Args...)
		words := append(wordsAt(line, fields), unknown)
		end := slices.IndexFunc(words, func(w word) bool { return strings.Contains(w.text, "$(") })
		unclear := err != nil || end < len(words)-1
		first, f, always := words[0].text, inner, sure[call] && !mayEnd && !sure[words[0].text]
		if f.file {
			f.shell = fmt.Sprintf("the shell of %s, line %d,", inner.shell, call.Pos().Line())
		}
		switch first {
		case "exec":
			f, words, end = outer, words[1:], end-1
			mayEnd = mayEnd || len(words) > 1
		case "exit", "return": // with another code: of a fault
			mayEnd = mayEnd || end < 2 || words[1].text == "0"
			continue
		case "trap", ".", "source":
			mayTrap = true
		case "shift", "set":
			if first == "shift" || slices.Contains(words, word{"--", line}) {
				known.Env = arguments(nil)
			}
		}
		if unclear || end > 0 {
			for _, ran := range c.behind(f, words[:max(end, 1)]) {
				ran.always, ran.unclear = ran.always && always, ran.unclear || unclear
				list = append(list, ran)
			}
		}
	}
	for i := range list {
		list[i].traps = list[i].traps || mayTrap
	}
	return list
}

// markSure marks the calls that statements make in any case.
func markSure(sure map[any]bool, list []*syntax.Stmt) map[any]bool {
	for _, s := range list {
		switch x := s.Cmd.(type) {
		case *syntax.CallExpr:
			sure[x] = !s.Background
		case *syntax.Block:
			markSure(sure, x.Stmts)
		case *syntax.BinaryCmd:
			if x.Op <= syntax.OrStmt && !s.Background {
				markSure(sure, []*syntax.Stmt{x.X})
			}
			if x.Op == syntax.AndStmt && !s.Background {
				markSure(sure, []*syntax.Stmt{x.Y})
			}
		}
	}
	return sure
}
