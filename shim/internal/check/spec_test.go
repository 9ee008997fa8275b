package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
)

// specs are texts, with the error of an invalid text; HINT is the form of a spec.
var specs = `
	:9000                   |
	127.0.0.1:9000          |
	[::]:65535              |
	:1                      |
	:9000=:8080             |
	:9000=[::1]:8080        |
	[::1]:9000=127.0.0.1:9000 |
	10.0.0.1:9000=:9000     |
	                        | invalid listen address "": HINT
	9000                    | invalid listen address "9000": HINT
	:9000=8080              | invalid target "8080": HINT
	:0                      | HINT
	:65536                  | HINT
	:+1                     | HINT
	:9000=                  | invalid target "": HINT
	:9000=:8080=:7070       | invalid target ":8080=:7070": HINT
	localhost:9000          | HINT
	[fe80::1%eth0]:9000     | HINT
	http://127.0.0.1:9000   | HINT
	:9000=0.0.0.0:8080      | invalid target "0.0.0.0:8080": all addresses; give :8080
	:9000=[::]:8080         | all addresses; give :8080
	:8080=:8080             | invalid target ":8080": the listener itself
	[::]:8080=10.0.0.1:8080 | the listener itself
	0.0.0.0:8080=:8080      | the listener itself
	0.0.0.0:9000=[::1]:9000 |
	[::1]:8080=:8080        | the listener itself
	10.0.0.1:80=10.0.0.1:80 | the listener itself
`

// TestParse tests Parse and String: a valid text is its own canonical form, and the error about
// any other text has a hint.
func TestParse(t *testing.T) {
	const hint = "give :PORT, IPV4:PORT or [IPV6]:PORT, as in :9000 or :9000=:8080"
	for _, cells := range tables.Rows(specs) {
		text, want := cells[0], strings.ReplaceAll(cells[1], "HINT", hint)
		s, err := Parse(text)
		got := fmt.Sprint(err)
		switch {
		case want == "" && (err != nil || s.String() != text):
			t.Errorf("Parse(%q) = %v, %v", text, s, err)
		case want != "" && (s != nil || !strings.Contains(got, want)):
			t.Errorf("Parse(%q) = %v, %v, want %q", text, s, err, want)
		}
	}
	// An IPv4-mapped address is shown as IPv4.
	if s, err := Parse("[::ffff:127.0.0.1]:9000"); err != nil || s.String() != "127.0.0.1:9000" {
		t.Errorf("%v, %v", s, err)
	}
}

// FuzzParse: Parse accepts the result of String, and the Spec stays the same.
func FuzzParse(f *testing.F) {
	for _, cells := range tables.Rows(specs) {
		f.Add(cells[0] + "\n")
		f.Add(cells[0])
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || s != nil {
				t.Errorf("Parse(%q) = %v, %q: want no Spec and an error of one line", text, s, err)
			}
		} else if again, err := Parse(s.String()); err != nil || *again != *s {
			t.Errorf("Parse(%q) = %v, but Parse(%q) = %v, %v", text, s, s.String(), again, err)
		}
	})
}
