package main

import (
	"path"
	"slices"
	"strings"
)

// program is the program that words run behind inits and shells.
type program struct {
	words   []word
	behind  string  // the init in front of the program
	group   bool    // the init signals the whole group
	shell   string  // the shell in front of the program
	script  *script // the shell's script
	unclear bool    // the program may run any other program
}

// inits are the programs that lameduck replaces, by the name too.
var inits = []string{"tini", "tini-static", "docker-init", "dumb-init", "catatonit", "podman-init"}

// programOf returns the program that words run.
func programOf(words []word) program {
	p := program{words: words}
	for len(p.words) > 0 {
		name := path.Base(p.words[0].text)
		switch {
		case slices.Contains(inits, name):
			rest := commandOfInit(p.words)
			p.group = p.group || signalsGroup(name, p.words[:len(p.words)-len(rest)])
			p.behind, p.words = name, rest
		case isShell(name):
			s, ok := scriptIn(p.words)
			switch {
			case ok && s.exec != nil:
				p.words = s.exec
				continue
			case !ok || s.unclear:
				p.unclear = true
			default:
				p.shell, p.script = name, &s
				p.words = s.last
				p.unclear = len(s.last) == 0 || runsOthers(path.Base(s.last[0].text))
			}
			return p
		default:
			p.unclear = !known(p.words[0].text) || runsOthers(name)
			return p
		}
	}
	p.unclear = true
	return p
}

// commandOfInit returns the command in an init's words.
func commandOfInit(words []word) []word {
	for i := 1; i < len(words); i++ {
		switch text := words[i].text; {
		case text == "-p" || text == "-e" || text == "-r":
			i++
		case !strings.HasPrefix(text, "-"):
			return words[i:]
		}
	}
	return nil
}

// signalsGroup reports whether an init signals its child's whole group or session.
func signalsGroup(init string, flags []word) bool {
	has := func(flag string) bool {
		return slices.ContainsFunc(flags, func(w word) bool { return w.text == flag })
	}
	if init == "dumb-init" {
		return !has("-c") && !has("--single-child")
	}
	return has("-g")
}

// runsOthers reports whether programs of that name run other programs.
func runsOthers(name string) bool {
	stem, suffix, _ := strings.Cut(name, ".")
	return suffix == "sh" || suffix == "bash" || strings.Contains(stem, "entrypoint") ||
		slices.Contains([]string{"run", "start", "init", "boot", "launch", "env", "nice", "gosu", "su-exec", "setpriv", "chroot", "timeout", "s6-svscan", "supervisord"}, stem)
}

// isLameduck reports whether the program is lameduck without a subcommand.
func (p program) isLameduck() bool { return p.called("") }

// isHook reports whether the program is lameduck hold.
func (p program) isHook() bool { return p.called("hold") }

// called reports whether the program is lameduck with the subcommand, or without any if
// subcommand is empty.
func (p program) called(subcommand string) bool {
	if len(p.words) == 0 || path.Base(p.words[0].text) != "lameduck" {
		return false
	}
	got := ""
	if len(p.words) > 1 && slices.Contains([]string{"hold", "watch", "install", "presets"}, p.words[1].text) {
		got = p.words[1].text
	}
	return got == subcommand
}

// mentions reports whether a word contains lameduck.
func mentions(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool { return strings.Contains(w.text, "lameduck") })
}

// shellStays reports whether a shell stays in front of the program. bash, BusyBox and others
// execute the last command in their own place if possible; dash does not.
func (p program) shellStays(image string) bool {
	if p.shell == "" || p.group || strings.HasSuffix(name(p.words), ".exe") {
		return false
	}
	another := func(name string) bool { return strings.Contains(image, name) }
	return !p.script.plain || (p.shell == "sh" || p.shell == "dash") && !slices.ContainsFunc([]string{"alpine", "busybox", "windows"}, another)
}

// frontShell returns the shell in front of the program, with the condition if any.
func (p program) frontShell() string {
	if p.shell == "sh" && p.script.plain {
		return "sh (if sh is dash)"
	}
	return p.shell
}

// awaited returns the program that the shell waits for.
func (p program) awaited() string {
	if name(p.words) == "wait" || len(p.words) == 0 {
		return "its child"
	}
	return name(p.words)
}

// remedy returns what to do about the shell.
func (p program) remedy() string {
	if p.awaited() == "its child" {
		return "end the script with exec, or trap TERM in it"
	}
	return "put exec before " + name(p.words)
}

// name returns the name of the program in words.
func name(words []word) string {
	if len(words) == 0 {
		return "its entrypoint"
	}
	return words[0].text
}
