package cost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// at returns the time so many seconds after the start, if a text has any.
func at(text string) (moment time.Time) {
	if text != "" {
		moment = start.Add(testutil.Must(time.ParseDuration(text + "s")))
	}
	return moment
}

// TestStop: when a stop began, when it is over, and what would have been enough. Times are
// seconds after the start.
func TestStop(t *testing.T) {
	for _, c := range tables.Read[struct {
		Name                                        string
		TERM, End, LastRefused, LastOther, LastByte time.Time
		And, Found                                  string
	}](`
		# name | TERM | end | last refused | last new | last byte, not a probe's | and | began, over, hold, delay, keeps on
		no TERM             |    | 10   | 13.4 | 9.9  | 9.9  |                | 10 17.4 7.4 5 false
		TERM later          | 12 | 10   | 13.4 | 9.9  | 9.9  |                | 10 14 7.4 5 false
		held until quiet    | 10 | 17.2 |      | 13.1 | 13.2 |                | 10 21.2 7.2 5 false
		nobody comes        | 10 | 10.1 |      | 3    | 4    |                | 10 14.1 4 0 false
		connections remain  | 10 | 10.1 |      | 3    | 4    | Open=1         | 10 39 4 0 false
		it serves on        | 10 |      |      | 38   | 39   | Listening=81   | 10 39 19 31 false
		another port serves | 10 | 10.1 |      | 3    | 4    | Listening=81   | 10 39 4 0 false
		nothing has served  | 10 |      |      |      |      |                | 10 10 4 0 false
		refused to the end  | 10 | 10.1 | 38.9 | 10   | 10   |                | 10 39 19 30 false
		refused as it ended |    | 10   | 10   | 9    | 9    |                | 10 14 4 2 false
		clients keep on     | 10 | 19   |      | 8    | 19   | Before.InUse=3 | 10 23 13 11 true
		and others came     | 10 | 19   |      | 16   | 19   | Before.InUse=3 | 10 23 13 11 false
		a pool, let go late | 10 | 25   |      | 10.6 | 22.1 | Before.InUse=3 | 10 29 16.1 14 false
		and after the end   | 10 | 15   | 22.1 | 10.6 | 15   | Before.InUse=3 | 10 26.1 16.1 14 false
		it dies at once     | 10 | 10.1 |      | 3    | 10   | Before.InUse=3 | 10 14.1 4 2 false
	`, at) {
		s := &Stop{TERM: c.TERM, Limit: 29 * time.Second, QuietFor: 4 * time.Second, Ceiling: 19 * time.Second}
		s.Before.LastOther, s.Before.LastByte, s.Before.LastUse = c.LastOther, c.LastByte, c.LastByte
		s.LastRefused = c.LastRefused
		if !c.End.IsZero() {
			s.Ends = []*End{{Port: 80, At: c.End}}
		}
		if name, value, found := strings.Cut(c.And, "="); found && !tables.Set(s, name, value) {
			panic(name)
		}
		for s.Now = s.Began(); !s.Over() && s.Now.Before(at("60")); s.Now = s.Now.Add(100 * time.Millisecond) {
		}
		hold, delay, _ := s.Needed()
		got := fmt.Sprint(s.Began().Sub(start).Seconds(), s.Now.Sub(start).Seconds(), hold.Round(time.Millisecond).Seconds(),
			delay.Seconds(), s.KeepsOn())
		if got != c.Found {
			t.Errorf("%s: %s, want %s", c.Name, got, c.Found)
		}
	}
	s := &Stop{Now: start, Result: Result{Listening: []uint16{81}}}
	if !s.Began().IsZero() || s.Over() {
		t.Errorf("nothing has happened, and the stop began at %v", s.Began())
	}
}
