package quote

import (
	"encoding/json"
	"testing"
)

// nasty has a text of each kind that must not reach a terminal or a log unescaped.
var nasty = []struct{ text, line, word, json string }{
	{"", "", `""`, `""`},
	{"HUP:0,/run/app", "HUP:0,/run/app", "HUP:0,/run/app", `"HUP:0,/run/app"`},
	{"two words", "two words", `"two words"`, `"two words"`},
	{"it's", "it's", `"it's"`, `"it's"`},
	{`a\nb"c"`, `a\nb"c"`, `"a\\nb\"c\""`, `"a\\nb\"c\""`}, // a backslash of the value
	{"é▁日本", "é▁日本", "é▁日本", `"é▁日本"`},
	{"a\nforged", `a\nforged`, `"a\nforged"`, `"a\nforged"`},
	{"it's\x1b[2J\t", `it's\x1b[2J\t`, `"it's\x1b[2J\t"`, `"it's\u001b[2J\t"`},
	{"\a\x7f", `\a\x7f`, `"\a\x7f"`, `"\u0007\u007f"`},
	{"\u009b2J", `\u009b2J`, `"\u009b2J"`, `"\u009b2J"`},
	{"a\u202eb\u2028", `a\u202eb\u2028`, `"a\u202eb\u2028"`, `"a\u202eb\u2028"`},
	{"\U000e0041\u00a0", `\U000e0041\u00a0`, `"\U000e0041\u00a0"`, `"\udb40\udc41\u00a0"`},
	{"\xff(\xe2\x80", `\xff(\xe2\x80`, `"\xff(\xe2\x80"`, `"\ufffd(\ufffd\ufffd"`},
	{"\ufffd", "\ufffd", "\ufffd", "\"\ufffd\""},
	{`~ {a,b} [c] !d ^e`, `~ {a,b} [c] !d ^e`, `"~ {a,b} [c] !d ^e"`, `"~ {a,b} [c] !d ^e"`},
}

// TestNasty tests Line, Word, Words and JSON.
func TestNasty(t *testing.T) {
	for _, c := range nasty {
		encoded, _ := json.Marshal(c.text)
		got := [...]string{Line(c.text), Words([]string{"a", c.text}), JSON(encoded)}
		if want := [...]string{c.line, "a " + c.word, c.json}; got != want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, want)
		}
	}
}

// FuzzLine tests that Line changes no result, its own included, and that JSON keeps the value.
func FuzzLine(f *testing.F) {
	for _, c := range nasty {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		encoded, _ := json.Marshal(text)
		for _, printed := range []string{Line(text), Word(text), JSON(encoded)} {
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
	for n, want := range []string{"", "", "", "€", "€b", "€b"} {
		if got := Cut("€b", n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}
