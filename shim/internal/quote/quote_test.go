package quote

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// nasty has a text of each kind that must not reach a terminal or a log unescaped.
var nasty = []struct{ text, line, word, shell, json string }{
	{"", "", "", `''`, `""`},
	{"HUP:0,/run/app", "HUP:0,/run/app", "HUP:0,/run/app", "HUP:0,/run/app", `"HUP:0,/run/app"`},
	{"two words", "two words", `"two words"`, `'two words'`, `"two words"`},
	{"it's", "it's", `"it's"`, `'it'\''s'`, `"it's"`},
	{`a\nb"c"`, `a\nb"c"`, `"a\\nb\"c\""`, `'a\nb"c"'`, `"a\\nb\"c\""`}, // a backslash of the value
	{"é▁日本", "é▁日本", "é▁日本", "'é▁日本'", `"é▁日本"`},
	{"a\nforged", `a\nforged`, `"a\nforged"`, `$'a\012forged'`, `"a\nforged"`},
	{"it's\x1b[2J\t", `it's\x1b[2J\t`, `"it's\x1b[2J\t"`, `$'it\047s\033[2J\011'`, `"it's\u001b[2J\t"`},
	{"\a\x7f", `\a\x7f`, `"\a\x7f"`, `$'\007\177'`, `"\u0007\u007f"`},
	{"\u009b2J", `\u009b2J`, `"\u009b2J"`, `$'\302\2332J'`, `"\u009b2J"`},
	{"a\u202eb\u2028", `a\u202eb\u2028`, `"a\u202eb\u2028"`, `$'a\342\200\256b\342\200\250'`, `"a\u202eb\u2028"`},
	{"\U000e0041\u00a0", `\U000e0041\u00a0`, `"\U000e0041\u00a0"`, `$'\363\240\201\201\302\240'`, `"\udb40\udc41\u00a0"`},
	{"\xff(\xe2\x80", `\xff(\xe2\x80`, `"\xff(\xe2\x80"`, `$'\377(\342\200'`, `"\ufffd(\ufffd\ufffd"`},
	{"\ufffd", "\ufffd", "\ufffd", "'\ufffd'", "\"\ufffd\""},
	{`~ {a,b} [c] !d ^e`, `~ {a,b} [c] !d ^e`, `"~ {a,b} [c] !d ^e"`, `'~ {a,b} [c] !d ^e'`, `"~ {a,b} [c] !d ^e"`},
}

// TestNasty tests Line, Word, Shell and JSON.
func TestNasty(t *testing.T) {
	for _, c := range nasty {
		encoded, _ := json.Marshal(c.text)
		got := [...]string{Line(c.text), Word(c.text), Shell([]string{c.text}), JSON(encoded)}
		if want := [...]string{c.line, c.word, c.shell, c.json}; got != want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, want)
		}
	}
}

// TestShells tests the results of Shell with real shells.
func TestShells(t *testing.T) {
	var words []string
	for _, c := range nasty {
		words = append(words, c.text)
	}
	for _, shell := range []string{"bash", "zsh", "ksh"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(err)
			}
			cmd := exec.Command(shell, "-c", `printf '%s\0' `+Shell(words))
			cmd.Env = []string{"LC_ALL=C.UTF-8"}
			out, err := cmd.Output()
			if want := strings.Join(words, "\x00") + "\x00"; err != nil || string(out) != want {
				t.Errorf("%v\n got %q\nwant %q", err, out, want)
			}
		})
	}
}

// FuzzLine tests that Line changes no result, its own included, and that JSON keeps the value.
func FuzzLine(f *testing.F) {
	for _, c := range nasty {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		encoded, _ := json.Marshal(text)
		for _, printed := range []string{Line(text), Word(text), Shell([]string{text}), JSON(encoded)} {
			if Line(printed) != printed {
				t.Errorf("%q becomes %q, which is not printable", text, printed)
			}
		}
		var before, after string
		json.Unmarshal(encoded, &before)
		if err := json.Unmarshal([]byte(JSON(encoded)), &after); err != nil || before != after {
			t.Errorf("JSON(%q) = %s: value %q, %v", text, JSON(encoded), after, err)
		}
	})
}

// TestCut: Cut keeps whole characters, and as many bytes as it may.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"abc", 2, "ab"},
		{"abc", 3, "abc"},
		{"a€b", 3, "a"},
		{"a€b", 4, "a€"},
		{"€b", 2, ""},
	} {
		if got := Cut(c.text, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}
