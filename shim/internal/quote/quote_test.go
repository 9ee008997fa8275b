package quote

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// nasty has a text of each kind that must not reach a terminal or a log unescaped.
var nasty = []struct{ text, line, shell, json string }{
	{"", "", `''`, `""`},
	{"plain", "plain", "plain", `"plain"`},
	{"two words", "two words", `'two words'`, `"two words"`},
	{"it's", "it's", `'it'\''s'`, `"it's"`},
	{`a\b "c"`, `a\b "c"`, `'a\b "c"'`, `"a\\b \"c\""`},
	{"é ▁ 日本", "é ▁ 日本", "'é ▁ 日本'", `"é ▁ 日本"`},
	{"a\nlameduck: forged", `a\nlameduck: forged`, `$'a\012lameduck: forged'`, `"a\nlameduck: forged"`},
	{"a\r\tb", `a\r\tb`, `$'a\015\011b'`, `"a\r\tb"`},
	{"\x1b[2J", `\x1b[2J`, `$'\033[2J'`, `"\u001b[2J"`},
	{"it's \x1b'", `it's \x1b'`, `$'it\047s \033\047'`, `"it's \u001b'"`},
	{"\x00\a\x7f", `\x00\a\x7f`, "", `"\u0000\u0007\u007f"`},
	{"\u0085\u009b2J", `\u0085\u009b2J`, `$'\302\205\302\2332J'`, `"\u0085\u009b2J"`},
	{"\u2028\u2029", `\u2028\u2029`, `$'\342\200\250\342\200\251'`, `"\u2028\u2029"`},
	{"a\u202eb\u2066c", `a\u202eb\u2066c`, `$'a\342\200\256b\342\201\246c'`, `"a\u202eb\u2066c"`},
	{"\U000e0041", `\U000e0041`, `$'\363\240\201\201'`, `"\udb40\udc41"`},
	{"\u00a0\ufeff", `\u00a0\ufeff`, `$'\302\240\357\273\277'`, `"\u00a0\ufeff"`},
	{"\xff\xc3(\xe2\x80", `\xff\xc3(\xe2\x80`, `$'\377\303(\342\200'`, `"\ufffd\ufffd(\ufffd\ufffd"`},
	{"\x9b31m", `\x9b31m`, `$'\23331m'`, `"\ufffd31m"`}, // CSI in Latin-1
	{"\ufffd", "\ufffd", "'\ufffd'", `"` + "\ufffd" + `"`},
	{`~ {a,b} [c] !d ^e`, `~ {a,b} [c] !d ^e`, `'~ {a,b} [c] !d ^e'`, `"~ {a,b} [c] !d ^e"`},
}

// TestNasty tests Line, Shell and JSON.
func TestNasty(t *testing.T) {
	for _, c := range nasty {
		if got := Line(c.text); got != c.line {
			t.Errorf("Line(%q) = %s, want %s", c.text, got, c.line)
		}
		if got := Shell([]string{c.text}); c.shell != "" && got != c.shell {
			t.Errorf("Shell(%q) = %s, want %s", c.text, got, c.shell)
		}
		encoded, _ := json.Marshal(c.text)
		if got := JSON(encoded); got != c.json {
			t.Errorf("JSON(%q) = %s, want %s", c.text, got, c.json)
		}
	}
}

// TestWord tests Word, and Line applied to the result of Word.
func TestWord(t *testing.T) {
	for value, want := range map[string]string{
		"":               "",
		"/run/app.sock":  "/run/app.sock",
		"HUP:0,INT:TERM": "HUP:0,INT:TERM",
		"a b":            `"a b"`,
		`a"b`:            `"a\"b"`,
		`a\nb`:           `"a\\nb"`, // a backslash of the value, not of an escape by Line
		"it's":           `"it's"`,
		"a\nb":           `"a\nb"`,
		"\x1b[2J":        `"\x1b[2J"`,
		"\xff":           `"\xff"`,
	} {
		if got := Word(value); got != want {
			t.Errorf("Word(%q) = %s, want %s", value, got, want)
		}
		if again := Line(Word(value)); again != want {
			t.Errorf("Line(Word(%q)) = %s, want %s", value, again, want)
		}
	}
}

// TestShells tests the results of Shell with real shells.
func TestShells(t *testing.T) {
	var words []string
	for _, c := range nasty {
		if !strings.Contains(c.text, "\x00") { // arguments have no NUL
			words = append(words, c.text)
		}
	}
	shells := 0
	for _, shell := range []string{"bash", "zsh", "ksh"} {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		shells++
		cmd := exec.Command(shell, "-c", `printf '%s\0' `+Shell(words))
		cmd.Env = []string{"LC_ALL=C.UTF-8"}
		out, err := cmd.Output()
		if want := strings.Join(words, "\x00") + "\x00"; err != nil || string(out) != want {
			t.Errorf("%s: %v\n got %q\nwant %q", shell, err, out, want)
		}
	}
	if shells == 0 {
		t.Skip("neither bash, zsh nor ksh is installed")
	}
}

// FuzzLine tests that results are a line of printable UTF-8, that Line changes its own
// result no more, and that JSON keeps the value.
func FuzzLine(f *testing.F) {
	for _, c := range nasty {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line := Line(text)
		for _, printed := range []string{line, Word(text), Shell([]string{text})} {
			if !utf8.ValidString(printed) || strings.ContainsFunc(printed, func(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) || unicode.In(r, unicode.Bidi_Control) }) {
				t.Errorf("%q becomes %q, which is not printable", text, printed)
			}
		}
		if Line(line) != line {
			t.Errorf("Line(Line(%q)) = %q, want %q", text, Line(line), line)
		}
		encoded, _ := json.Marshal(text)
		var before, after string
		json.Unmarshal(encoded, &before)
		if err := json.Unmarshal([]byte(JSON(encoded)), &after); err != nil || before != after || JSON(encoded) != Line(JSON(encoded)) {
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
		{"abc", 9, "abc"},
		{"abc", 0, ""},
		{"aé", 2, "a"},
		{"aéb", 3, "aé"},
		{"a€b", 3, "a"},
		{"a€b", 4, "a€"},
		{"😀b", 3, ""},
		{"\xff\xffb", 2, "\xff\xff"},
	} {
		if got := Cut(c.text, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}
