package health

import (
	"strings"
	"testing"
)

// TestParse: what is given is what is shown.
func TestParse(t *testing.T) {
	for _, text := range good {
		s, err := Parse(text)
		if err != nil || s.String() != text {
			t.Errorf("Parse(%q) = %v, %v", text, s, err)
		}
	}
	// An IPv4 address after all.
	if s, err := Parse("[::ffff:127.0.0.1]:9000"); err != nil || s.String() != "127.0.0.1:9000" {
		t.Errorf("%v, %v", s, err)
	}
}

var good = []string{":9000", "127.0.0.1:9000", "0.0.0.0:9000", "[::1]:9000", "[::]:65535", ":1", ":9000=:8080",
	"127.0.0.1:9000=127.0.0.1:8080", ":9000=[::1]:8080", "[::1]:9000=127.0.0.1:9000", "10.0.0.1:9000=:9000",
	"0.0.0.0:9000=[::1]:9000", "[fd00::1]:9000=10.0.0.1:9000"}

// bad is what is wrong, and a piece of what is said about it.
var bad = map[string]string{
	"":                        "give LISTEN",
	"9000":                    "a port is written :9000",
	":9000=8080":              "a port is written :8080",
	"health":                  "no port",
	":":                       "no port from 1 to 65535",
	":0":                      "no port from 1 to 65535",
	":65536":                  "no port from 1 to 65535",
	":+1":                     "no port from 1 to 65535",
	":http":                   "no port from 1 to 65535",
	":9000=":                  "has no port",
	":9000=:8080=:7070":       "more than one target",
	"localhost:9000":          "names are not looked up",
	":9000=app:8080":          "names are not looked up",
	"::1:9000":                "brackets: [::1]",
	"[127.0.0.1]:9000":        "without brackets: 127.0.0.1",
	"[::1:9000":               "no IP address",
	"::1]:9000":               "no IP address",
	"[]:9000":                 "no IP address",
	"[fe80::1%eth0]:9000":     "zone",
	":9000=0.0.0.0:8080":      "give :9000=:8080",
	":9000=[::]:8080":         "give :9000=:8080",
	":8080=:8080":             "to itself",
	"[::]:8080=10.0.0.1:8080": "to itself",
	"0.0.0.0:8080=:8080":      "to itself",
	"127.0.0.1:8080=:8080":    "to itself",
	"10.0.0.1:80=10.0.0.1:80": "to itself",
	"http://127.0.0.1:9000":   "no IP address",
	":9000\n":                 "no port from 1 to 65535",
}

// TestParseBad: each error is a line that says what would be right.
func TestParseBad(t *testing.T) {
	for text, want := range bad {
		s, err := Parse(text)
		if err == nil || s != (Spec{}) {
			t.Errorf("Parse(%q) = %v, %v", text, s, err)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Parse(%q) says %q; want %q in it", text, err, want)
		}
	}
}

// FuzzParse: what is taken is shown in a form that is taken, as the same.
func FuzzParse(f *testing.F) {
	for _, text := range good {
		f.Add(text)
	}
	for text := range bad {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || s != (Spec{}) {
				t.Errorf("%v, %q", s, err)
			}
			return
		}
		if again, err := Parse(s.String()); err != nil || again != s {
			t.Errorf("%q is %v, which is %v, %v", text, s, again, err)
		}
		if s.Listen.Port() == 0 || strings.Contains(text, "=") != (s.Target.Port() != 0) {
			t.Errorf("%q is %#v", text, s)
		}
	})
}

// TestMode: what is given is what is shown.
func TestMode(t *testing.T) {
	for _, m := range []Mode{Pass, Fail, Close} {
		if got, err := ParseMode(m.String()); err != nil || got != m {
			t.Errorf("%v: %v, %v", m, got, err)
		}
	}
	for _, text := range []string{"", "FAIL", "passes", "Mode(7)"} {
		if m, err := ParseMode(text); err == nil || !strings.Contains(err.Error(), "give fail") {
			t.Errorf("%q: %v, %v", text, m, err)
		}
	}
	if Mode(7).String() != "Mode(7)" {
		t.Error(Mode(7).String())
	}
}
