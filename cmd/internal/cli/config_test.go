package cli

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim"
)

// wordsOf splits text as a shell does.
func wordsOf(t *testing.T, text string) []string {
	t.Helper()
	words, err := SplitWords(text)
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// configOf returns what a call comes to: the fields of the configuration that it sets, and the
// errors.
func configOf(args, env []string) string {
	var cfg shim.Config
	var said []string
	if len(args) > 0 && args[0] == "hold" {
		line, _ := Parse("hold", args[1:], env)
		cfg = line.Tolerant()
		for _, fault := range line.Faults {
			said = append(said, "error: "+fault.Error())
		}
	} else {
		line, err := Parse("run", args, env)
		if err == nil {
			cfg, err = line.Config()
		}
		if err == nil {
			_, err = shim.Review(cfg)
		}
		if err != nil {
			return "error: " + err.Error()
		}
	}
	plain := shim.Config{Command: []string{"x"}, Level: shim.Warn}
	if len(cfg.Command) == 0 {
		plain.Command = nil
	}
	return strings.Join(append(tables.Differing(plain, cfg), said...), " ")
}

//go:embed testdata/configs.txt
var configs string

// TestConfig: every flag in every form, variables, and mistakes.
func TestConfig(t *testing.T) {
	for _, cells := range tables.Rows(configs) {
		if len(cells) == 3 { // of TestBadValues
			continue
		}
		var args, env []string
		for _, word := range wordsOf(t, cells[0]) {
			if word[0] != '-' && strings.Contains(word, "=") {
				env = append(env, word)
			} else {
				args = append(args, word)
			}
		}
		if len(args) == 0 || args[0] != "hold" {
			args = append(args, "x")
		}
		if got := configOf(args, env); got != cells[1] {
			t.Errorf("%s\n got %s\nwant %s", cells[0], got, cells[1])
		}
	}
}

// TestBytes: any bytes may be in a word, in a name and in a value. Blanks and newlines around
// the value of a variable do not count.
func TestBytes(t *testing.T) {
	for _, c := range []struct{ args, env, want string }{
		{"--alive-file=/\xe9 --on-stop /\xe9 -- /\xe9", "LAMEDUCK_WAIT_GONE=/\xe9,A=\xe9",
			"Command=[/\xe9] Env=[A=\xe9] WaitGone=[/\xe9] OnStop={[/\xe9] 0 <nil>} AliveFile=/\xe9"},
		{"-d 1  ", "", "Command=[ ] Delay=1s"},
		{"-\xe9 x", "", `error: unknown flag "-\xe9": flags of the command follow the command (lameduck --help-all lists the flags)`},
		{"x", "LAMEDUCK_A\nB=1",
			"Env=[LAMEDUCK_A\nB=1] Warnings=[unknown variable \"LAMEDUCK_A\\nB\": lameduck --help-all lists the variables]"},
		{"x", "A=1,B,LAMEDUCK_DELAY,LAMEDUCK_B", "Env=[A=1 B LAMEDUCK_DELAY LAMEDUCK_B]"},
		{"x", "LAMEDUCK_REWRITE= \tTERM:USR1\r\n", "Rewrites=[TERM:USR1]"},
		{"x", "LAMEDUCK_REWRITE= \n", ""},
	} {
		if got := configOf(strings.Split(c.args, " "), strings.Split(c.env, ",")); got != c.want {
			t.Errorf("%q %q\n got %q\nwant %q", c.env, c.args, got, c.want)
		}
	}
}

// TestBadValues: a bad value is an error with the flag, its variable and the remedy, in one line of
// printable characters.
func TestBadValues(t *testing.T) {
	const forged = "'\x1b[2J\n\u202e\xff"
	flags := map[string]bool{}
	for _, cells := range tables.Rows(configs) {
		if len(cells) != 3 {
			continue
		}
		name, remedy := cells[0], cells[1]
		flags[name] = true
		for _, value := range append(wordsOf(t, cells[2]), forged) {
			if value == forged {
				remedy = ""
			}
			got := configOf([]string{"--" + name + "=" + value, "-d1", "x"}, nil)
			want := fmt.Sprintf("error: --%s=%s (%s): ", name, shim.Quote(value), shim.Variable(name))
			if !strings.HasPrefix(got, want) || !strings.Contains(got, remedy) || !isLine(got) {
				t.Errorf("got %q\nwant %s... %s", got, want, remedy)
			}
		}
	}
}

// isLine reports whether text has printable characters alone.
func isLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// FuzzConfig: any words and variables, which a zero byte separates, give a configuration or one line.
func FuzzConfig(f *testing.F) {
	for _, cells := range tables.Rows(configs) {
		f.Add(strings.ReplaceAll(cells[0], " ", "\x00"), strings.ReplaceAll(cells[0], " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, args, env string) {
		got := configOf(strings.Split(args, "\x00"), strings.Split(env, "\x00"))
		if strings.HasPrefix(got, "error: ") && !isLine(got) {
			t.Errorf("%q", got)
		}
	})
}

// TestWords: blanks, quotes and backslashes as in sh(1); no expansion.
func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"  a  b\tc\n":          {"a", "b", "c"},
		`a 'b c' "d e"`:        {"a", "b c", "d e"},
		`a''b ""`:              {"ab", ""},
		`a\ b \'c\" \\`:        {"a b", `'c"`, `\`},
		`"a\"b\\c\d\$e"`:       {`a"b\c\d$e`},
		`'a\b"c'`:              {`a\b"c`},
		"\"a\\`\"":             {"a`"},
		"/bin/../bin/true x/y": {"/bin/true", "x/y"},
	} {
		if got, err := parseCommand(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestCommand: the command begins where the flags end.
func TestCommand(t *testing.T) {
	for _, cells := range tables.Rows(`
		x y z                     | x y z
		-- x -- y                 | x -- y
		-d 1 -- -x                | -x
		-d1 -- --help             | --help
		-- hold                   | hold
		-d 1 hold                 | hold
		-- -- x                   | -- x
		-d 1 -- -- x              | -- x
		x -- -x                   | x -- -x
		x --version -h --help-all | x --version -h --help-all
		-d 1 x -d 9 --no-such     | x -d 9 --no-such
		-                         | -
		                          |
		--                        |
		-d 1 --                   |
		-gd 1 x -d                | x -d
		--group x                 | x
		--group=false x           | x
		--subreaper x             | x
	`) {
		line, err := Parse("run", strings.Fields(cells[0]), nil)
		if err != nil || strings.Join(line.Command, " ") != cells[1] || line.Help || line.HelpAll || line.Version {
			t.Errorf("%s: %q runs, %v; want %q", cells[0], line.Command, err, cells[1])
		}
	}
}

// TestModelIsLate: without a flag and a variable of lameduck kong makes no model, which takes
// thousands of allocations, a large part of lameduck's start.
func TestModelIsLate(t *testing.T) {
	args, env := []string{"--", "true", "-d"}, []string{"A=1", "PATH=x"}
	got := testing.AllocsPerRun(10, func() { Parse("run", args, env) })
	if got > 10 {
		t.Errorf("%v allocations", got)
	}
}
