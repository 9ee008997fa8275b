package stop_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

// TestScriptsReal plays the golden scripts marked "real" on the built binary.
func TestScriptsReal(t *testing.T) {
	scripts, err := script.Load(testutil.Path("testdata/stop/*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		if s.Real {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				playReal(t, s)
			})
		}
	}
}

func playReal(t *testing.T, s *script.Script) {
	b := box.Setup{Env: s.Env}.Catch(t, strings.Join(s.Flags, " "))
	ready := b.Out.Wait("ready").At
	for _, e := range s.Events {
		if e.Text == "killed KILL" && slices.ContainsFunc(s.Actions, func(a script.Step) bool { return a.Text == "sends KILL" }) {
			continue // lameduck sends the KILL
		}
		time.Sleep(time.Until(ready.Add(e.At))) // a script says at which times events come
		if name, err := sig.Parse(e.Text); err == nil {
			b.Signal(name)
		} else {
			b.Send(e.Text)
		}
	}
	code := b.WaitExit()
	got := map[string][]box.Line{"leaves": {{At: time.Now(), Text: fmt.Sprint(code)}}} // by the verbs of scripts
	for _, line := range b.Err.All() {
		r := box.ParseReport(line.Text)
		if r.Level == "warn" {
			r.Message = "warning: " + r.Message
		}
		got["says"] = append(got["says"], box.Line{At: line.At, Text: r.Message})
	}
	for _, line := range b.Out.All() {
		if name, ok := strings.CutPrefix(line.Text, "got "); ok {
			got["sends"] = append(got["sends"], box.Line{At: line.At, Text: name})
		}
	}
	compareReal(t, s, ready, got)
}

// measured matches the times in a report, which differ from run to run.
var measured = regexp.MustCompile(`[0-9]+\.[0-9] s`)

// leeway is how much too early an action may be, for scripts with two actions at nearly the
// same time.
const leeway = 5 * time.Millisecond

// compareReal compares actions with the script: the same actions of each verb in the same
// order, each at its time or up to 2 s later.
func compareReal(t *testing.T, s *script.Script, ready time.Time, got map[string][]box.Line) {
	t.Helper()
	for _, a := range s.Actions {
		verb, text, _ := strings.Cut(a.Text, " ")
		if verb == "samples" || verb == "notes" || a.Text == "sends KILL" { // not seen from outside; KILL is not caught
			continue
		}
		if len(got[verb]) == 0 {
			t.Errorf("missing: %v %s", a.At, a.Text)
			continue
		}
		g := got[verb][0]
		got[verb] = got[verb][1:]
		if measured.ReplaceAllString(g.Text, "N s") != measured.ReplaceAllString(text, "N s") {
			t.Errorf("%s %q, want %q", verb, g.Text, text)
		}
		if at := g.At.Sub(ready); a.At > 0 && at < a.At-leeway || at > a.At+2*time.Second {
			t.Errorf("%s %q at %v, want %v", verb, g.Text, at, a.At)
		}
	}
	for verb, rest := range got {
		for _, g := range rest {
			t.Errorf("unexpected: %s %s", verb, g.Text)
		}
	}
}
