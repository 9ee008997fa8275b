// Package stop_test tests the stop sequence on the built binary: golden scripts, --on-stop,
// neighbors, health checks, the report and the termination log.
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

func TestMain(m *testing.M) { box.Main(m, nil) }

// TestScriptsReal plays the golden scripts marked "real" on the built binary.
func TestScriptsReal(t *testing.T) {
	t.Parallel()
	for _, s := range script.Load(testutil.Path("testdata/stop/*.txt")) {
		if s.Real {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				playReal(t, s)
			})
		}
	}
}

// measured matches the times in a report, which differ from run to run.
var measured = regexp.MustCompile(`[0-9]+\.[0-9] s`)

// leeway is how much too early an action may be, for scripts with two actions at nearly the
// same time.
const leeway = 5 * time.Millisecond

// playReal plays a script, and wants the same actions of each verb in the same order, each at its
// time or up to 2 s later. KILL is not caught.
func playReal(t *testing.T, s *script.Script) {
	b := box.Setup{Env: s.Env}.Catch(t, strings.Join(s.Flags, " "))
	ready := b.Out.Wait("ready").At
	isKill := func(action script.Step) bool { return action.Text == "sends KILL" }
	killed := slices.ContainsFunc(s.Actions, isKill) // by lameduck
	for _, e := range s.Events {
		time.Sleep(time.Until(ready.Add(e.At))) // a script says at which times events come
		due := 0
		for _, a := range s.Actions {
			if strings.HasPrefix(a.Text, "sends ") && !isKill(a) && a.At < e.At {
				due++
			}
		}
		testutil.Eventually(t, "what was sent so far is received", func() bool { return b.Out.Count("got ") >= due })
		if name, err := sig.Parse(e.Text); err == nil {
			b.Signal(name)
		} else if e.Text != "killed KILL" || !killed {
			b.Send(e.Text)
		}
	}
	got := map[string][]box.Line{} // by verb
	note := func(verb, text string, at time.Time) {
		got[verb] = append(got[verb], box.Line{At: at, Text: verb + " " + text})
	}
	note("leaves", fmt.Sprint(b.WaitExit()), time.Now())
	for _, line := range b.Err.All() {
		r := box.ParseReport(line.Text)
		note("says", map[string]string{"warn": "warning: "}[r.Level]+r.Message, line.At)
	}
	for _, line := range b.Out.All() {
		if name, ok := strings.CutPrefix(line.Text, "got "); ok {
			note("sends", name, line.At)
		}
	}
	for _, a := range slices.DeleteFunc(s.Actions, isKill) {
		verb, _, _ := strings.Cut(a.Text, " ")
		g := box.Line{Text: "nothing"}
		if len(got[verb]) > 0 {
			g, got[verb] = got[verb][0], got[verb][1:]
		}
		at := g.At.Sub(ready)
		if measured.ReplaceAllString(g.Text, "N s") != measured.ReplaceAllString(a.Text, "N s") ||
			a.At > 0 && at < a.At-leeway || at > a.At+2*time.Second {
			t.Errorf("%v %s, want %v %s", at, g, a.At, a.Text)
		}
	}
	for _, rest := range got {
		if len(rest) > 0 {
			t.Errorf("unexpected: %s", rest)
		}
	}
}
