package script

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// dir is the directory of the golden scripts.
var dir = testutil.Path("testdata/stop")

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
	s, err := Parse("good.txt", good)
	if err != nil {
		t.Fatal(err)
	}
	want := &Script{
		Name:    "good.txt",
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

// TestGolden: the golden scripts have the form that Format writes.
func TestGolden(t *testing.T) {
	scripts, err := Load(filepath.Join(dir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		text, err := os.ReadFile(filepath.Join(dir, s.Name))
		if err != nil {
			t.Error(err)
		} else if got := s.Format(s.Actions); got != string(text) {
			t.Errorf("%s has another form than Format writes:\n%s", s.Name, got)
		}
		if !strings.HasPrefix(string(text), "# ") || len(s.Events) == 0 || len(s.Actions) == 0 {
			t.Errorf("%s has no first line, no events or no actions", s.Name)
		}
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
		s, err := Parse("bad.txt", c.text)
		if err == nil {
			t.Errorf("%q parses: %+v", c.text, s)
		} else if msg := err.Error(); !strings.Contains(msg, "bad.txt: ") || !strings.Contains(msg, c.message) {
			t.Errorf("%q: %q; want the file name and %s", c.text, msg, c.message)
		}
	}
}

func TestLoadBad(t *testing.T) {
	tmp := t.TempDir()
	if scripts, err := Load(filepath.Join(tmp, "*.txt")); err == nil || !strings.Contains(err.Error(), "no script matches") {
		t.Errorf("from an empty folder: %v, %v", scripts, err)
	}
	for name, text := range map[string]string{"a.txt": good, "b.txt": "no script", "c.txt": good} {
		if err := os.WriteFile(filepath.Join(tmp, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if scripts, err := Load(filepath.Join(tmp, "*.txt")); err == nil || !strings.Contains(err.Error(), "b.txt") {
		t.Errorf("with an invalid script among them: %v, %v", scripts, err)
	}
	if scripts, err := Load(filepath.Join(tmp, "[")); err == nil {
		t.Errorf("from a bad pattern: %v", scripts)
	}
	scripts, err := Load(filepath.Join(tmp, "[ac].txt"))
	if err != nil || len(scripts) != 2 || scripts[0].Name != "a.txt" || scripts[1].Name != "c.txt" {
		t.Errorf("two valid scripts: %v, %v", scripts, err)
	}
}
