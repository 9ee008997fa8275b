package main

import (
	"path"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/lameduck-init/lameduck/shim"
)

// script is a shell script, as far as the linter understands the script.
type script struct {
	exec    []word   // the words after a final exec
	last    []word   // the last command, which the shell waits for
	plain   bool     // last is a plain program: some shells execute a plain program in their own place
	unclear bool     // the script handles signals, or is not understood
	calls   [][]word // all commands
	certain [][]word // the commands that run in any case, in order
}

// parseScript reads the text of a script that begins at a line.
func parseScript(text string, line int) script {
	var s script
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || len(file.Stmts) == 0 {
		return script{unclear: true}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			s.note(literals(n, line))
		case *syntax.FuncDecl:
			s.unclear = true
		}
		return true
	})
	for _, stmt := range file.Stmts {
		s.follow(stmt, line)
	}
	end := file.Stmts[len(file.Stmts)-1]
	for both, ok := end.Cmd.(*syntax.BinaryCmd); ok && both.Op != syntax.Pipe; both, ok = end.Cmd.(*syntax.BinaryCmd) {
		end = both.Y
	}
	switch cmd := end.Cmd.(type) {
	case *syntax.CallExpr:
		s.last = literals(cmd, line)
		s.plain = name(s.last) != "wait"
	case *syntax.Subshell, *syntax.Block:
		s.unclear = true
	}
	if len(s.last) > 1 && s.last[0].text == "exec" {
		s.exec = s.last[1:]
	}
	return s
}

// follow adds the commands of a statement that run in any case.
func (s *script) follow(stmt *syntax.Stmt, line int) {
	if stmt.Background {
		return
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if call := literals(cmd, line); len(call) > 0 {
			s.certain = append(s.certain, call)
		}
	case *syntax.BinaryCmd:
		s.follow(cmd.X, line)
		if cmd.Op == syntax.AndStmt {
			s.follow(cmd.Y, line)
		}
	}
}

// note adds a command.
func (s *script) note(call []word) {
	if len(call) == 0 {
		return
	}
	s.calls = append(s.calls, call)
	switch call[0].text {
	case "trap", "eval", ".", "source", "exec":
		s.unclear = true // unless exec is the last command
	}
}

// literals returns a command's words. Words that the shell expands at run time are not
// known.
func literals(call *syntax.CallExpr, line int) (words []word) {
	for _, w := range call.Args {
		words = append(words, word{literal(w.Parts), line})
	}
	return words
}

func literal(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(literal(p.Parts))
		default:
			b.WriteString("$(shell)")
		}
	}
	return b.String()
}

// isShell reports whether a program is a shell, by the name.
func isShell(program string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "ksh"}, path.Base(program))
}

// scriptIn returns the script in a shell's words: with -c the first word that is no option.
func scriptIn(words []word) (s script, ok bool) {
	inWords := false
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case !strings.HasPrefix(w.text, "-") && inWords:
			return parseScript(w.text, w.line), true
		case !strings.HasPrefix(w.text, "-"):
			return s, false // a script file
		case strings.HasPrefix(w.text, "--"):
		default:
			inWords = inWords || strings.Contains(w.text, "c")
			if strings.HasSuffix(w.text, "o") { // -o pipefail, -ceuo pipefail
				i++
			}
		}
	}
	return s, false
}

// commands returns the words themselves, or the commands of the script in a shell's words.
func commands(words []word) [][]word {
	if len(words) == 0 {
		return nil
	}
	if isShell(words[0].text) {
		s, _ := scriptIn(words)
		return s.calls
	}
	return [][]word{words}
}

// sleeps returns the total time of the sleep commands in words.
func sleeps(words []word) (d time.Duration) {
	calls := [][]word{words}
	if len(words) == 0 || isShell(words[0].text) {
		s, _ := scriptIn(words)
		calls = s.certain
	}
	for _, call := range calls {
		if call[0].text == "exec" && len(call) > 1 {
			call = call[1:]
		}
		if path.Base(call[0].text) != "sleep" {
			continue
		}
		for _, w := range call[1:] {
			length, err := shim.ParseDuration(w.text)
			if err == nil {
				d += length
			}
		}
	}
	return d
}
