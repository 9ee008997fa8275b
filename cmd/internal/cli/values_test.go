package cli

import (
	_ "embed"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim"
)

//go:embed testdata/values.txt
var badValues string

// oneLine checks that an error is one line and contains all of says.
func oneLine(t *testing.T, of string, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s is no error", of)
		return
	}
	for _, part := range append(says, "") {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q; want one line with %q in it", of, err, part)
		}
	}
}

// TestBadValues: a bad value is one line, with the flag, its variable and the remedy. Each flag
// has bad values, or needs none.
func TestBadValues(t *testing.T) {
	flags := modelOf(t, "run")
	seen := map[string]bool{}
	for _, cells := range rows(badValues) {
		name, right := cells[0], cells[1]
		values, err := SplitWords(cells[2])
		if err != nil {
			t.Fatal(err)
		}
		seen[name] = true
		for _, value := range values {
			variable := Variable(flags[name])
			flagged, set := "--"+name+"="+value, variable+"="+value
			says := "--" + name + "=" + shim.Quote(value) + " (" + variable + "): "
			for _, c := range [][2][]string{{{flagged, "-d1", "x"}}, {{"-d1", "x"}, {set}}} {
				if name != "delay" || c[1] == nil {
					_, err := configOf(c[0], c[1])
					oneLine(t, fmt.Sprint(c), err, says, right)
				}
			}
		}
	}
	for name, flag := range flags {
		if Variable(flag) != "" && !seen[name] {
			t.Errorf("--%s has no bad values", name)
		}
	}
}

// TestWords: blanks, quotes and backslashes as in sh(1); no expansion.
func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"a":                    {"a"},
		"  a  b\tc\n":          {"a", "b", "c"},
		`a 'b c' "d e"`:        {"a", "b c", "d e"},
		`a''b ""`:              {"ab", ""},
		`a\ b \'c\" \\`:        {"a b", `'c"`, `\`},
		`"a\"b\\c\d\$e"`:       {`a"b\c\d$e`},
		`'a\b"c'`:              {`a\b"c`},
		`curl -X PUT "$URL/*"`: {"curl", "-X", "PUT", "$URL/*"},
		"ä 'ö ü'":              {"ä", "ö ü"},
		"/bin/../bin/true x/y": {"/bin/true", "x/y"},
	} {
		if got, err := parseCommand(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}
