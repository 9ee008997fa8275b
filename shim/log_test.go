package shim

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/report"
)

// loggedEntry is a line in JSON.
type loggedEntry struct {
	Schema         int
	Time           time.Time
	Level, Message string
	report.Figures
}

// TestLevels: every level has a name in JSON and a prefix in text.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		level Level
		text  string
		json  string
	}{{Error, "lameduck: x 1", "error"}, {Warn, "lameduck: warning: x 1", "warn"}, {Info, "lameduck: x 1", "info"}, {Debug, "lameduck: x 1", "debug"}} {
		for _, inJSON := range []bool{false, true} {
			var said []string
			l := &loop{plan: &plan{Config: Config{Level: c.level, JSON: inJSON}}, host: host{writeLine: func(lines ...string) { said = append(said, lines...) }}}
			l.log(c.level, "x %d", 1)
			l.log(c.level+1, "not said")
			want := c.text
			if inJSON {
				var e loggedEntry
				if len(said) != 1 || json.Unmarshal([]byte(said[0]), &e) != nil || e.Level != c.json || e.Message != "x 1" || e.Schema != 1 || time.Since(e.Time) > time.Minute {
					t.Errorf("said %q", said)
				}
			} else if !slices.Equal(said, []string{want}) {
				t.Errorf("said %q, want %q", said, want)
			}
		}
	}
}

// TestTroubleOnce: why the traffic is not observed in the best way is said when it changes.
func TestTroubleOnce(t *testing.T) {
	var said []string
	l := &loop{
		plan: &plan{Config: Config{Level: Warn, Until: Quiet}},
		host: host{writeLine: func(lines ...string) { said = append(said, lines...) }},
	}
	for _, trouble := range []string{"", "first", "first", "second", "", ""} {
		s := observe.Snapshot{Observer: observe.ProcNet, Trouble: trouble}
		l.warnUnobservable(&s, &report.Observation{})
		l.sample = s
	}
	const prefix = "lameduck: warning: observing the traffic through /proc/net: "
	if !slices.Equal(said, []string{prefix + "first", prefix + "second"}) {
		t.Errorf("said %q", said)
	}
}

// TestGapInJSON: dropped lines are reported in the format of the other lines.
func TestGapInJSON(t *testing.T) {
	var e loggedEntry
	if line := newStderr(2, true).DroppedText(7); json.Unmarshal([]byte(line), &e) != nil || e.Level != "warn" || !strings.HasPrefix(e.Message, "7 lines dropped") {
		t.Errorf("it says %s", line)
	}
	if line := newStderr(2, false).DroppedText(7); !strings.HasPrefix(line, "lameduck: 7 lines dropped") {
		t.Errorf("it says %s", line)
	}
}
