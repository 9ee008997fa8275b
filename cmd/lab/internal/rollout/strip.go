package rollout

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// column is the time that one symbol of a strip stands for.
const column = 100 * time.Millisecond

const margin = "  "

// strip draws a trial's requests, by planned time, as a row of symbols while the trial is
// played.
type strip struct {
	out       io.Writer
	good, bad string
	began     time.Time
	each      int // requests in a column
	columns   []columnOf
	drawn     int
}

type columnOf struct {
	ended int
	bad   bool
}

// newStrip returns a strip, with colors on a terminal.
func newStrip(out io.Writer, rate int) *strip {
	s := &strip{out: out, good: ".", bad: "x", each: rate * int(column) / int(time.Second)}
	if onTerminal(out) && os.Getenv("NO_COLOR") == "" {
		s.good, s.bad = "\x1b[32m.\x1b[0m", "\x1b[31mx\x1b[0m"
	}
	return s
}

// begin starts a new row.
func (s *strip) begin(at time.Time) {
	if s.columns != nil {
		fmt.Fprintf(s.out, "\n%sthe machine stood still for a moment: once more\n", margin)
	}
	s.began = at
	s.columns, s.drawn = nil, 0
	fmt.Fprint(s.out, "\n", margin)
}

// add adds a result and draws each complete column.
func (s *strip) add(r result) {
	i := s.at(r.planned.Sub(s.began))
	for len(s.columns) <= i {
		s.columns = append(s.columns, columnOf{})
	}
	s.columns[i].ended++
	s.columns[i].bad = s.columns[i].bad || r.kind != load.Answered
	for s.drawn < len(s.columns) && s.columns[s.drawn].ended == s.each {
		s.draw()
	}
}

func (s *strip) at(d time.Duration) int { return max(0, int(d/column)) }

func (s *strip) draw() {
	symbol := s.good
	if s.columns[s.drawn].bad {
		symbol = s.bad
	}
	fmt.Fprint(s.out, symbol)
	s.drawn++
}

// end draws the last column, which may have fewer requests, and under the row the marks of
// the stop, the last first, so that no text covers another:
//
//	|     balancer stops sending
//	TERM, process gone
func (s *strip) end(stopped *stop) {
	for s.drawn < len(s.columns) {
		s.draw()
	}
	s.columns = nil
	fmt.Fprintln(s.out)
	marks := s.marks(stopped)
	for i, m := range slices.Backward(marks) {
		line := []byte(strings.Repeat(" ", m.column))
		for _, earlier := range marks[:i] {
			line[earlier.column] = '|'
		}
		fmt.Fprintf(s.out, "%s%s%s\n", margin, line, m.text)
	}
}

// mark is an event, in a column of the row.
type mark struct {
	column int
	text   string
}

// marks returns the events in order of time. Events of one column share a mark.
func (s *strip) marks(stopped *stop) (all []mark) {
	term := stopped.began.Sub(s.began)
	after := func(ms float64) int { return s.at(term + time.Duration(ms*float64(time.Millisecond))) }
	each := []mark{{s.at(term), "TERM"}, {after(stopped.StopMS), "process gone"}, {after(stopped.LagMS), "balancer stops sending"}}
	slices.SortStableFunc(each, func(a, b mark) int { return a.column - b.column })
	for _, m := range each {
		if last := len(all) - 1; last >= 0 && all[last].column == m.column {
			all[last].text += ", " + m.text
			continue
		}
		all = append(all, m)
	}
	return all
}
