package cost

import (
	"testing"
	"time"
)

// TestStop: when a stop began, when it is over, and what would have been enough. Times are
// seconds after the start; no time is 0.
func TestStop(t *testing.T) {
	at := func(seconds float64) time.Time {
		if seconds == 0 {
			return time.Time{}
		}
		return start.Add(time.Duration(seconds * float64(time.Second)))
	}
	for name, c := range map[string]struct {
		term, end, refused  float64
		lastNew, lastByte   float64
		inUse, open, others int // others: ports that listen
		began, over         float64
		hold, delay         float64
		keepsOn             bool
	}{
		"nothing yet":            {others: 1},
		"dies":                   {term: 10, end: 10.1, refused: 13.4, lastNew: 10, lastByte: 10.1, inUse: 3, began: 10, over: 17.4, hold: 7.4, delay: 5},
		"TERM later":             {term: 12, end: 10, refused: 13.4, lastNew: 9.9, lastByte: 9.9, began: 10, over: 17.4, hold: 7.4, delay: 5},
		"no TERM":                {end: 10, refused: 13.4, lastNew: 9.9, lastByte: 9.9, began: 10, over: 17.4, hold: 7.4, delay: 5},
		"held until quiet":       {term: 10, end: 17.2, lastNew: 13.1, lastByte: 13.2, began: 10, over: 21.2, hold: 7.2, delay: 5},
		"nobody comes":           {term: 10, end: 10.1, lastNew: 3, lastByte: 4, began: 10, over: 14.1, hold: 4},
		"connections remain":     {term: 10, end: 10.1, open: 1, lastNew: 3, lastByte: 4, began: 10, over: 39, hold: 4},
		"another port listens":   {term: 10, end: 10.1, others: 1, lastNew: 3, lastByte: 4, began: 10, over: 39, hold: 4},
		"it serves on":           {term: 10, others: 1, lastNew: 38, lastByte: 39, began: 10, over: 39, hold: 19, delay: 30},
		"nothing has listened":   {term: 10, began: 10, over: 10, hold: 4},
		"refused to the end":     {term: 10, end: 10.1, refused: 38.9, lastNew: 10, lastByte: 10, began: 10, over: 39, hold: 19, delay: 30},
		"clients keep on":        {term: 10, end: 19, lastNew: 8, lastByte: 19, inUse: 3, began: 10, over: 23, hold: 13, keepsOn: true},
		"and others came before": {term: 10, end: 19, lastNew: 16, lastByte: 19, inUse: 3, began: 10, over: 23, hold: 13, delay: 8},
	} {
		s := &Stop{TERM: at(c.term), Limit: 29 * time.Second, QuietFor: 4 * time.Second, Ceiling: 19 * time.Second,
			LastNew: at(c.lastNew), LastByte: at(c.lastByte), InUse: c.inUse}
		s.Open, s.LastRefused = c.open, at(c.refused)
		if c.end > 0 {
			s.Ends = []End{{Port: 80, At: at(c.end)}}
		}
		if c.others > 0 {
			s.Listening = []uint16{81}
		}
		if got := s.Began(); !got.Equal(at(c.began)) {
			t.Errorf("%s: began at %v", name, got.Sub(start))
		}
		if c.began == 0 {
			if s.Over(at(1000)) {
				t.Errorf("%s: over", name)
			}
			continue
		}
		if c.over > c.began && s.Over(at(c.over-0.01)) || !s.Over(at(c.over+0.01)) {
			t.Errorf("%s: not over at %v s", name, c.over)
		}
		hold, delay := s.Needed()
		if (hold-time.Duration(c.hold*float64(time.Second))).Abs() > time.Millisecond || delay.Seconds() != c.delay || s.KeepsOn() != c.keepsOn {
			t.Errorf("%s: a hold of %v, a delay of %v, clients keep on: %v", name, hold, delay, s.KeepsOn())
		}
	}
}
