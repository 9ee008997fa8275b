package main

import (
	"path"
	"slices"
	"strings"
)

// program is what words run, seen through inits and shells.
type program struct {
	words   []word
	behind  string  // the init that it runs under
	shell   string  // the shell that stays in front of it
	script  *script // which was told so
	unclear bool    // it may run anything
}

// inits are programs whose place lameduck can take, under their names too.
var inits = []string{"tini", "tini-static", "docker-init", "dumb-init", "catatonit", "podman-init"}

// see looks through the words.
func see(words []word) program {
	p := program{words: words}
	for len(p.words) > 0 {
		name := path.Base(p.words[0].text)
		switch {
		case slices.Contains(inits, name):
			p.behind, p.words = name, behind(p.words)
		case isShell(name):
			s, ok := scriptIn(p.words)
			switch {
			case ok && s.exec != nil:
				p.words = s.exec
				continue
			case !ok || s.unclear:
				p.unclear = true
			default:
				p.shell, p.script, p.words = name, &s, s.last
			}
			return p
		default:
			p.unclear = !known(p.words[0].text) || starter(name)
			return p
		}
	}
	p.unclear = true
	return p
}

// behind is what an init is told to run.
func behind(words []word) []word {
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

// starter knows programs that run others, by their names.
func starter(name string) bool {
	stem, suffix, _ := strings.Cut(name, ".")
	return suffix == "sh" || suffix == "bash" || strings.Contains(stem, "entrypoint") ||
		slices.Contains([]string{"run", "start", "init", "boot", "launch", "env", "nice", "gosu", "su-exec", "setpriv", "chroot", "timeout", "s6-svscan", "supervisord"}, stem)
}

// isLameduck reports whether it is lameduck as an entrypoint.
func (p program) isLameduck() bool { return p.called("") }

// isHook reports whether it is lameduck hold.
func (p program) isHook() bool { return p.called("hold") }

// called reports whether it is that subcommand of lameduck's, or none if that is
// empty.
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

// mentions reports whether a word speaks of lameduck.
func mentions(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool { return strings.Contains(w.text, "lameduck") })
}
