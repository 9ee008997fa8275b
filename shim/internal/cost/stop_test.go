package cost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestStop: when a stop began, when it is over, and what would have been enough. Times are
// seconds after the start.
func TestStop(t *testing.T) {
	at := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		return start.Add(testutil.Must(time.ParseDuration(text + "s")))
	}
	for _, cells := range tables.Rows(`
		# name | TERM | end | last refused | last new | last byte, not a probe's | and | began | over | hold, delay, keeps on
		nothing yet         |    |      |      |      |      | Listening=81   |    |      |
		no TERM             |    | 10   | 13.4 | 9.9  | 9.9  |                | 10 | 17.4 | 7.4 5 false
		TERM later          | 12 | 10   | 13.4 | 9.9  | 9.9  |                | 10 | 14   | 7.4 5 false
		held until quiet    | 10 | 17.2 |      | 13.1 | 13.2 |                | 10 | 21.2 | 7.2 5 false
		connections remain  | 10 | 10.1 |      | 3    | 4    | Open=1         | 10 | 39   | 4 0 false
		another port serves | 10 | 10.1 |      | 3    | 4    | Listening=81   | 10 | 39   | 4 0 false
		nothing has served  | 10 |      |      |      |      |                | 10 | 10   | 4 0 false
		refused as it ended |    | 10   | 10   | 9    | 9    |                | 10 | 14   | 4 2 false
		clients keep on     | 10 | 19   |      | 8    | 19   | Before.InUse=3 | 10 | 23   | 13 11 true
		and others came     | 10 | 19   |      | 16   | 19   | Before.InUse=3 | 10 | 23   | 13 11 false
		a pool, let go late | 10 | 25   |      | 10.6 | 22.1 | Before.InUse=3 | 10 | 29   | 16.1 14 false
		and after the end   | 10 | 15   | 22.1 | 10.6 | 15   | Before.InUse=3 | 10 | 26.1 | 16.1 14 false
	`) {
		s := &Stop{TERM: at(cells[1]), Limit: 29 * time.Second, QuietFor: 4 * time.Second, Ceiling: 19 * time.Second}
		s.Before = traffic.Sample{LastOther: at(cells[4]), LastByte: at(cells[5]), LastUse: at(cells[5])}
		s.LastRefused = at(cells[3])
		if cells[2] != "" {
			s.Ends = []*End{{Port: 80, At: at(cells[2])}}
		}
		if name, value, found := strings.Cut(cells[6], "="); found {
			if !tables.Set(s, name, value) {
				panic(name)
			}
		}
		isOver := func(now time.Time) bool {
			s.Now = now
			return s.Over()
		}
		if got := s.Began(); !got.Equal(at(cells[7])) || got.IsZero() && isOver(start.Add(time.Hour)) {
			t.Errorf("%s: began at %v", cells[0], got.Sub(start))
			continue
		} else if got.IsZero() {
			continue
		}
		over := at(cells[8])
		if over.After(s.Began()) && isOver(over.Add(-10*time.Millisecond)) || !isOver(over.Add(10*time.Millisecond)) {
			t.Errorf("%s: not over at %s s", cells[0], cells[8])
		}
		hold, delay := s.Needed()
		if got := fmt.Sprint(hold.Round(time.Millisecond).Seconds(), delay.Seconds(), s.KeepsOn()); got != cells[9] {
			t.Errorf("%s: a hold and a delay of %s, want %s", cells[0], got, cells[9])
		}
	}
}
