package script

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

const good = `# What went wrong.
flags --delay=2s --rewrite=TERM:USR1
env A=a b
env B=

real

0s    early TERM
1.5s  killed KILL
----
0s    says TERM: holding 2 s, then USR1
1.5s  leaves 137
`

func TestParse(t *testing.T) {
	s, err := Parse("good", good)
	if err != nil {
		t.Fatal(err)
	}
	want := &Script{
		Name:    "good",
		Text:    good,
		Flags:   []string{"--delay=2s", "--rewrite=TERM:USR1"},
		Env:     []string{"A=a b", "B="},
		Real:    true,
		Events:  []Step{{0, "early TERM"}, {1500 * time.Millisecond, "killed KILL"}},
		Actions: []Step{{0, "says TERM: holding 2 s, then USR1"}, {1500 * time.Millisecond, "leaves 137"}},
		header:  good[:strings.Index(good, "----\n")+len("----\n")],
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	if got := s.Format(s.Actions); got != good {
		t.Errorf("formatted:\n%s\nwant:\n%s", got, good)
	}
	if got := s.Format([]Step{{Text: "leaves 0"}}); !strings.HasSuffix(got, "\n----\n0s    leaves 0\n") {
		t.Errorf("formatted with other actions:\n%s", got)
	}
}

func TestParseBad(t *testing.T) {
	for _, c := range []struct{ text, message string }{
		{"", "----"},
		{"0s TERM\n", "----"},
		{"0s TERM\n---- \n0s leaves 0\n", "----"},
		{"TERM\n----\n", `"TERM"`},
		{"3s\n----\n", `"3s"`},
		{"3 TERM\n----\n", `"3 TERM"`},
		{"flag --delay=2s\n----\n", `"flag --delay=2s"`},
		{"#no blank\n----\n", `"#no blank"`},
		{"0s TERM\n----\nleaves 0\n", `"leaves 0"`},
		{"0s TERM\n----\n0s leaves 0\n\n", `""`},
	} {
		s, err := Parse("bad", c.text)
		if err == nil {
			t.Errorf("%q parses: %+v", c.text, s)
		} else if msg := err.Error(); !strings.Contains(msg, "bad: ") || !strings.Contains(msg, c.message) {
			t.Errorf("%q: %q; want the name and %s", c.text, msg, c.message)
		}
	}
}

// TestLoad: every golden script has the form that Format writes, a first line and events.
func TestLoad(t *testing.T) {
	scripts, err := Load(testutil.Path("testdata/stop/*.txt"))
	if err != nil || len(scripts) < 50 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	names := map[string]bool{}
	for _, s := range scripts {
		if got := s.Format(s.Actions); got != s.Text {
			t.Errorf("%s has another form than Format writes:\n%s", s.Name, got)
		}
		if !strings.HasPrefix(s.Text, "# ") || len(s.Events) == 0 || len(s.Actions) == 0 || names[s.Name] {
			t.Errorf("%s has no first line, no events or no actions, or is there twice", s.Name)
		}
		names[s.Name] = true
	}
}

// TestLoadBad: a file without scripts, or with a bad one among them, is an error.
func TestLoadBad(t *testing.T) {
	dir := t.TempDir()
	scripts, err := Load(filepath.Join(dir, "*.txt"))
	if err == nil || !strings.Contains(err.Error(), "no script matches") {
		t.Errorf("from an empty folder: %v, %v", scripts, err)
	}
	testutil.WriteFile(t, filepath.Join(dir, "a.txt"), "== one\n"+good+"\n== two\nno script\n")
	if scripts, err := Load(filepath.Join(dir, "*.txt")); err == nil || !strings.Contains(err.Error(), "a.txt: two") {
		t.Errorf("with an invalid script among them: %v, %v", scripts, err)
	}
}

// TestRows: cells, comments and continued lines.
func TestRows(t *testing.T) {
	got := Rows("# no row\n\na | b c |\n\td | e\n    f\n")
	if want := [][]string{{"a", "b c", ""}, {"d", "e f"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
