package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/alecthomas/kong"
	"github.com/creack/pty"

	"github.com/lameduck-init/lameduck/shim"
)

var update = flag.Bool("update", false, "write what is found into the golden files")

// about is what a shell tells of a flag and offers for its value. Flags, short
// forms and whether there is a value come from the grammar.
type about struct {
	says string
	kind string // of value: signals, rewrites, schedule, preset, path, command, words, or "" where a shell knows none
}

var abouts = map[string]about{
	"rewrite":             {"send TO where FROM arrives", "rewrites"},
	"stop-signal":         {"start the stop on these too", "signals"},
	"preset":              {"what a known server takes for a graceful stop", "preset"},
	"group":               {"signal the process group of the command", ""},
	"drop-unhandled":      {"pass on only what the command catches", ""},
	"delay":               {"keep serving at least this long", ""},
	"until":               {"hold on until traffic has stopped", "words"},
	"max-delay":           {"hold no longer than this", ""},
	"grace-period":        {"what the orchestrator gives before KILL", ""},
	"wait-gone":           {"also hold while this file exists", "path"},
	"on-stop":             {"run this when the stop begins", "command"},
	"quiet-for":           {"how long the silence must last", ""},
	"max-silence":         {"how long a silent request holds", ""},
	"count-port":          {"the local ports that count", ""},
	"ignore-port":         {"local ports that do not count", ""},
	"ignore-peer":         {"peers that do not count", ""},
	"ignore-probes":       {"leave out what looks like health probes", ""},
	"stop-schedule":       {"what to send after the hold", "schedule"},
	"kill-after":          {"KILL what runs this long after the signal", ""},
	"linger":              {"wait this long for what the command left", ""},
	"exit-code":           {"report an exit code as another", ""},
	"health":              {"answer health checks here", ""},
	"health-during":       {"how, from the stop signal on", "words"},
	"alive-file":          {"a file that exists while the command runs", "path"},
	"subreaper":           {"reap orphans where not PID 1", ""},
	"parent-death-signal": {"what lameduck gets when its parent dies", "signal"},
	"termination-log":     {"where the report goes as well", "path"},
	"log-level":           {"what is said", "words"},
	"log-format":          {"how it is said", "words"},
	"json":                {"one JSON object a line", ""},
	"explain":             {"say what would happen, start nothing", ""},
	"help":                {"the everyday flags", ""},
	"help-all":            {"all flags", ""},
	"version":             {"the version", ""},
}

// enumerated are the words that a flag takes where it takes no others: those that
// the error for any other names.
func enumerated() map[string][]string {
	words := map[string][]string{}
	for name, err := range map[string]error{
		"until":         second(parseUntil("?")),
		"log-level":     second(parseLevel("?")),
		"log-format":    second(parseFormat("?")),
		"health-during": second(shim.ParseHealthMode("?")),
	} {
		_, list, _ := strings.Cut(err.Error(), "give ")
		list = regexp.MustCompile(` \(.*?\)`).ReplaceAllString(list, "")
		words[name] = regexp.MustCompile(`, | or `).Split(list, -1)
	}
	return words
}

func second[T any](_ T, err error) error { return err }

// TestEnumerated: such words are right, and there are some.
func TestEnumerated(t *testing.T) {
	all := enumerated()
	for name, parse := range map[string]func(string) error{
		"until":         func(s string) error { return second(parseUntil(s)) },
		"log-level":     func(s string) error { return second(parseLevel(s)) },
		"log-format":    func(s string) error { return second(parseFormat(s)) },
		"health-during": func(s string) error { return second(shim.ParseHealthMode(s)) },
	} {
		if len(all[name]) < 2 {
			t.Errorf("--%s takes %q?", name, all[name])
		}
		for _, word := range all[name] {
			if err := parse(word); err != nil {
				t.Error(err)
			}
		}
	}
}

// inSource are the words that the first match of re has in a file of ours.
func inSource(file, re string) (words []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	for _, m := range regexp.MustCompile(re).FindAllStringSubmatch(string(text), -1) {
		for _, word := range strings.Split(m[1], ",") {
			words = append(words, strings.Trim(word, `" `))
		}
	}
	return words
}

// subcommands are those that the command line knows, and dropins the names of
// other inits that it goes by.
var (
	subcommands = inSource("run.go", `(?m)^\t\tcase ("[a-z]+"):$`)
	dropins     = inSource("dropin.go", `(?m)^\tcase ("[a-z", -]+"):$`)
)

// option is a flag as the templates have it.
type option struct {
	Name, Short, Says, Kind string
	Words                   []string
	Valued                  bool
}

// options are a grammar's flags, those that ask last.
func options(t *testing.T, grammar any) (list []option) {
	t.Helper()
	words := enumerated()
	k, err := kong.New(grammar, kong.Name("lameduck"), kong.NoDefaultHelp())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range k.Model.Flags {
		a, ok := abouts[f.Name]
		if !ok {
			t.Fatalf("--%s: what is it about?", f.Name)
		}
		o := option{Name: f.Name, Says: a.says, Kind: a.kind, Words: words[f.Name], Valued: !f.IsBool()}
		if f.Short != 0 {
			o.Short = string(f.Short)
		}
		if (a.kind == "words") != (o.Words != nil) || a.kind != "" && !o.Valued {
			t.Errorf("--%s: %q is not the kind of its values", f.Name, a.kind)
		}
		list = append(list, o)
	}
	return list
}

// signals are the names of those that may be given for a flag. URG and PROF only
// pass where the linker was told so: in lameduck, and not in a test.
func signals(flag, form string) (names []string) {
	for s := shim.Signal(1); s <= 31; s++ {
		cfg, err := readBoth("--"+flag+"="+fmt.Sprintf(form, s)+" x", "")
		if err == nil && cfg.Validate() == nil || s == 23 || s == 27 {
			names = append(names, s.String())
		}
	}
	return names
}

// scripts are the completions by their files in docs/completions.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	type mode struct {
		Name    string
		Options []option
	}
	data := struct {
		Modes                                    []mode
		Subcommands, Presets, Stops, All, Caught []string
	}{
		Modes:       []mode{{"run", options(t, &cli{})}, {"hold", options(t, &holdCLI{})}, {"watch", options(t, &watchCLI{})}},
		Subcommands: subcommands, Presets: presetNames(),
		Stops: signals("stop-signal", "%v"), All: signals("parent-death-signal", "%v"), Caught: signals("rewrite", "%v:0"),
	}
	texts := map[string]string{}
	for _, name := range []string{"lameduck.bash", "_lameduck", "lameduck.fish"} {
		var b bytes.Buffer
		tmpl := template.New(name + ".tmpl").Funcs(template.FuncMap{
			"join":    func(list []string) string { return strings.Join(list, " ") },
			"names":   func(list []option, which string) string { return strings.Join(optionNames(list, which), " ") },
			"colons":  func(list []string) string { return strings.Join(list, ": ") + ":" },
			"signals": func() string { return strings.Join(data.All, " ") },
		})
		tmpl = template.Must(tmpl.ParseFiles("testdata/" + name + ".tmpl"))
		if err := tmpl.Execute(&b, data); err != nil {
			t.Fatal(err)
		}
		texts[name] = b.String()
	}
	return texts
}

// optionNames are the flags as words, or the long or the short ones that take a
// value.
func optionNames(list []option, which string) (names []string) {
	for _, o := range list {
		switch {
		case which == "all":
			names = append(names, "--"+o.Name)
		case which == "long" && o.Valued:
			names = append(names, o.Name)
		case which == "short" && o.Valued && o.Short != "":
			names = append(names, o.Short)
		}
	}
	return names
}

const completions = "../../docs/completions/"

// TestCompletions: what the shells offer is what the grammar has.
func TestCompletions(t *testing.T) {
	texts := scripts(t)
	for name, want := range texts {
		got, err := os.ReadFile(completions + name)
		if string(got) == want {
			continue
		}
		if !*update {
			t.Errorf("docs/completions/%s is not what the grammar says (%v); write it with -update", name, err)
			continue
		}
		if err := os.MkdirAll(completions, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(completions+name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(completions)
	if err != nil || len(entries) != len(texts) {
		t.Errorf("docs/completions has %v, %v", entries, err)
	}
	for name := range abouts {
		if _, known := grammar(t)[name]; !known && !slices.Contains(flagsOf(t, &watchCLI{}), name) {
			t.Errorf("--%s is no flag", name)
		}
	}
}

// asked is a command line that ends where somebody asks for more, what is to be
// offered, and what is not. A "=" before the words says that there is no other.
var asked = []struct{ line, offers, not string }{
	{"lameduck ho", "hold", "watch --delay"},
	{"lameduck --", "--delay --until --help-all", "--json hold"},
	{"lameduck --del", "=--delay", ""},
	{"lameduck hold --", "--delay --log-level", "--rewrite --json --version"},
	{"lameduck watch --", "--json --quiet-for", "--delay --log-level"},
	{"lameduck -u ", "=elapsed settled quiet drained", ""},
	{"lameduck --until ", "=elapsed settled quiet drained", ""},
	{"lameduck --until=q", "=quiet", ""},
	{"lameduck -gu q", "=quiet", ""},
	{"lameduck hold -d 5 -u s", "=settled", ""},
	{"lameduck --log-level=", "=error warn info debug", ""},
	{"lameduck --log-format j", "=json", ""},
	{"lameduck --health-during=", "=fail close pass", ""},
	{"lameduck --preset=ngi", "=nginx", ""},
	{"lameduck -p au", "=auto", ""},
	{"lameduck presets hapr", "=haproxy", ""},
	{"lameduck --stop-signal=US", "=USR1 USR2", ""},
	{"lameduck --stop-signal=KI", "=", ""},
	{"lameduck --stop-signal=QUIT,USR", "=QUIT,USR1 QUIT,USR2", ""},
	{"lameduck --rewrite=TERM:QU", "=TERM:QUIT", ""},
	{"lameduck -r TERM:USR1,HUP:IN", "=TERM:USR1,HUP:INT", ""},
	{"lameduck --rewrite=US", "=USR1: USR2:", ""},
	{"lameduck --stop-schedule=USR1/30/TE", "=USR1/30/TERM", ""},
	{"lameduck --alive-file=./afi", "=./afile", ""},
	{"lameduck --wait-gone afi", "=afile", ""},
	{"lameduck install some", "=somefolder", ""},
	{"lameduck --delay=5 --until quiet -- some-prog", "=some-program", ""},
	{"lameduck some-prog", "=some-program", ""},
	{"lameduck -d 5 some-prog", "=some-program", ""},
	{"lameduck -d 5 some-program afi", "afile", "--delay"},
	{"lameduck -d 5 some-program --", "", "--delay --until"},
	{"lameduck --on-stop=some-prog", "=some-program", ""},
	{"lameduck --health=:9000=:8080 -u q", "=quiet", ""},
	{"lameduck --on-stop='a b' -u q", "=quiet", ""},
	{"lameduck -e 143 -u q", "=quiet", ""},
}

// TestCompletionsInShells asks real shells.
func TestCompletionsInShells(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(dir+"/afile", nil, 0o644)
	os.Mkdir(dir+"/somefolder", 0o755)
	os.Mkdir(dir+"/bin", 0o755)
	os.WriteFile(dir+"/bin/some-program", []byte("#!/bin/sh\n"), 0o755)
	for shell, asker := range map[string]string{"bash": bashAsker, "fish": fishAsker, "zsh": zshAsker} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(shell, " is not installed")
			}
			script := must(filepath.Abs(completions + map[string]string{"bash": "lameduck.bash", "fish": "lameduck.fish", "zsh": "_lameduck"}[shell]))
			for _, q := range asked {
				cmd := exec.CommandContext(t.Context(), path, shellFlags[shell]...)
				cmd.Args = append(cmd.Args, "-c", asker)
				cmd.Dir = dir
				cmd.Env = []string{"PATH=" + dir + "/bin:" + os.Getenv("PATH"), "HOME=" + dir, "SCRIPT=" + script, "LINE=" + q.line, "TERM=dumb", "LC_ALL=C.UTF-8"}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", q.line, err, out)
				}
				got := strings.Fields(strings.ReplaceAll(string(out), "/\n", "\n"))
				slices.Sort(got)
				got = slices.Compact(got)
				words, exact := strings.CutPrefix(q.offers, "=")
				want := strings.Fields(words)
				lacks := slices.DeleteFunc(slices.Clone(want), func(w string) bool { return slices.Contains(got, w) })
				if len(lacks) > 0 || exact && len(got) != len(want) {
					t.Errorf("%s: offers %q, want %q", q.line, got, q.offers)
				}
				for _, word := range strings.Fields(q.not) {
					if slices.Contains(got, word) {
						t.Errorf("%s: offers %s", q.line, word)
					}
				}
			}
		})
	}
}

// TestCompletionsTyped: the tabulator key of a bash on a terminal, whose readline
// puts the words together again.
func TestCompletionsTyped(t *testing.T) {
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	cmd := exec.Command(path, "--norc", "--noprofile", "-i")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PS1=ready ", "TERM=dumb", "INPUTRC=/dev/null"}
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Skip("no terminal: ", err)
	}
	late := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer func() {
		late.Stop()
		cmd.Process.Kill()
		cmd.Wait()
		tty.Close()
	}()
	var screen []byte
	shows := func(text string) {
		t.Helper()
		for buffer := make([]byte, 4096); ; {
			if i := bytes.Index(screen, []byte(text)); i >= 0 {
				screen = screen[i+len(text):]
				return
			}
			n, err := tty.Read(buffer)
			if err != nil {
				t.Fatalf("no %q on the screen: %v\n%s", text, err, screen)
			}
			screen = append(screen, buffer[:n]...)
		}
	}
	shows("ready ")
	fmt.Fprintf(tty, "source %s; lameduck() { printf '<%%s>' \"$@\"; echo; }; echo so${x}urced\n", completions+"lameduck.bash")
	shows("sourced\r\n")
	fmt.Fprint(tty, "lameduck --unt\t q\t--rewrite=TE\tQUI\t -p ngin\t --log-level=w\tx\n")
	shows("<--until><quiet><--rewrite=TERM:QUIT><-p><nginx><--log-level=warn><x>")
}

// shellFlags keep a shell from what its user has set up.
var shellFlags = map[string][]string{"bash": {"--norc", "--noprofile"}, "fish": {"--no-config"}, "zsh": {"-f"}}

// bashAsker does as readline does: it parts the line at COMP_WORDBREAKS, and puts
// what was offered after what stays.
const bashAsker = `
source "$SCRIPT"
COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_WORDS=() COMP_TYPE=9 COMP_KEY=9
compopt() { :; } # is for readline alone
word= kind= quote=
end() { [[ $kind ]] && COMP_WORDS+=("$word"); word= kind=; }
for ((i = 0; i < ${#LINE}; i++)); do
	c=${LINE:i:1} new=plain
	if [[ $quote ]]; then
		[[ $c == "$quote" ]] && quote=
	elif [[ $c == [\'\"] ]]; then
		quote=$c
	elif [[ $c == ' ' ]]; then
		end
		continue
	elif [[ $COMP_WORDBREAKS == *"$c"* ]]; then
		new=break
	fi
	[[ $kind == "$new" ]] || end
	kind=$new word+=$c
done
[[ $LINE == *' ' ]] && kind=plain word=
end
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
last=${LINE##* } word=${COMP_WORDS[COMP_CWORD]}
_lameduck lameduck "$word" "${COMP_WORDS[COMP_CWORD - 1]}"
[[ $word == [=:]* ]] && word=
stays=${last%"$word"}
[[ $stays == --*= ]] && stays=                        # the tests name the value alone
[[ $stays == --*=* ]] && stays=${stays#*=}
for reply in "${COMPREPLY[@]}"; do
	echo "$stays$reply"
done
`

const fishAsker = `
source $SCRIPT
complete -C "$LINE" | string replace -r '\t.*' '' | string replace -r '^--[a-z-]+=' ''
true
`

// zshAsker types the line into a zsh, and has it list what compadd was given. The words
// that are waited for are written in two parts, since the terminal may echo what is typed.
const zshAsker = `
zmodload zsh/zpty
zpty asked zsh -f -i
text() { local all part; while zpty -r asked part "$1"; do all+=$part; [[ $all == *$~1 ]] && break; done; print -r -- $all }
zpty -w asked "PROMPT= RPROMPT= PS2= ; stty -echo; fpath=(${SCRIPT:h} \$fpath); autoload -Uz compinit; compinit -C -d $HOME/dump"
zpty -w asked 'zstyle ":completion:*" list-grouped no; zstyle ":completion:*" menu no; bindkey "^I" complete-word
compadd() {
	if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
	local -a __hits; local __i; local -a __s __p __pp __x
	local -a __all=("$@")
	builtin compadd -A __hits "$@"
	zparseopts -D -E -a __x S:=__s P:=__p p:=__pp W:=__w
	for __i in $__hits; do print -r -- "OFF""ER ${IPREFIX#--*=}${__p[2]}${__pp[2]}$__i${__s[2]}"; done
	builtin compadd "${__all[@]}"
}
finish() { zle -I; _main_complete; print D""ONE; exit }
zle -C finish complete-word finish; bindkey "^T" finish; print READ""Y'
text '*READY'$'\r\n' >/dev/null
zpty -n -w asked "$LINE"$'\x14'
text '*DONE*' | sed -n 's/.*OFFER \([^\r]*\).*/\1/p'
`

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// tryWords is whether lameduck takes these words, a subcommand's too, in
// Kubernetes and without a warning.
func tryWords(args, env []string) error {
	env = append([]string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}, env...)
	var cfg shim.Config
	if len(args) > 0 && args[0] == "hold" {
		var c holdCLI
		twins, err := read(&c, args[1:], env, &cli{}, "")
		if err != nil {
			return err
		}
		cfg = shim.Config{Env: twins.rest, Until: shim.Quiet, Warnings: twins.unknown}
		if err := c.holdFlags.config(twins, &cfg); err != nil {
			return err
		}
	} else {
		c, twins, err := parse(args, env)
		if err != nil {
			return err
		}
		if cfg, err = c.config(twins); err != nil {
			return err
		}
		if len(cfg.Command) == 0 {
			return fmt.Errorf("no command")
		}
	}
	if len(cfg.Warnings) > 0 {
		return fmt.Errorf("warnings: %q", cfg.Warnings)
	}
	return cfg.Validate()
}
