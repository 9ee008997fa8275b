package cost

import (
	"fmt"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// seconds reads a number of seconds.
func seconds(text string) time.Duration {
	var n float64
	fmt.Sscan(text, &n)
	return time.Duration(n * float64(time.Second))
}

// TestStop: when a stop began, when it is over, and what would have been enough. Times are
// seconds after the start.
func TestStop(t *testing.T) {
	at := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		return start.Add(seconds(text))
	}
	for _, cells := range tables.Rows(`
		# name | TERM | end | last refused | last new | last byte, but of a probe's | and | began | over | hold | delay
		nothing yet         |    |      |      |      |      | others      |    |      |     |
		no TERM             |    | 10   | 13.4 | 9.9  | 9.9  |             | 10 | 17.4 | 7.4 | 5
		TERM later          | 12 | 10   | 13.4 | 9.9  | 9.9  |             | 10 | 14   | 7.4 | 5
		held until quiet    | 10 | 17.2 |      | 13.1 | 13.2 |             | 10 | 21.2 | 7.2 | 5
		nobody comes        | 10 | 10.1 |      | 3    | 4    |             | 10 | 14.1 | 4   |
		connections remain  | 10 | 10.1 |      | 3    | 4    | open        | 10 | 39   | 4   |
		it serves on        | 10 |      |      | 38   | 39   | others      | 10 | 39   | 19  | 31
		another port serves | 10 | 10.1 |      | 3    | 4    | others      | 10 | 39   | 4   |
		nothing has served  | 10 |      |      |      |      |             | 10 | 10   | 4   |
		refused to the end  | 10 | 10.1 | 38.9 | 10   | 10   |             | 10 | 39   | 19  | 30
		refused as it ended |    | 10   | 10   | 9    | 9    |             | 10 | 14   | 4    | 2
		clients keep on     | 10 | 19   |      | 8    | 19   | keep on     | 10 | 23   | 13  | 11
		and others came     | 10 | 19   |      | 16   | 19   | in use      | 10 | 23   | 13  | 11
		a pool, let go late | 10 | 25   |      | 10.6 | 22.1 | in use      | 10 | 29   | 16.1 | 14
		and after the end   | 10 | 15   | 22.1 | 10.6 | 15   | in use      | 10 | 26.1 | 16.1 | 14
	`) {
		s := &Stop{TERM: at(cells[1]), Limit: 29 * time.Second, QuietFor: 4 * time.Second, Ceiling: 19 * time.Second}
		s.Before = traffic.Sample{LastOther: at(cells[4]), LastByte: at(cells[5]), LastUse: at(cells[5])}
		s.LastRefused = at(cells[3])
		if cells[2] != "" {
			s.Ends = []*End{{Port: 80, At: at(cells[2])}}
		}
		switch cells[6] {
		case "others":
			s.Listening = []uint16{81}
		case "open":
			s.Open = 1
		case "in use", "keep on":
			s.Before.InUse = 3
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
		keepsOn := cells[6] == "keep on"
		if (hold-seconds(cells[9])).Abs() > time.Millisecond || delay != seconds(cells[10]) || s.KeepsOn() != keepsOn {
			t.Errorf("%s: a hold of %v, a delay of %v, clients keep on: %v", cells[0], hold, delay, s.KeepsOn())
		}
	}
}
