package report

import (
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// soon is a time after the command's end that is not worth a word.
const soon = 100 * time.Millisecond

// atWork returns the processes that the command has left behind and that have not ended.
func (s *Stop) atWork() []Worker {
	return slices.DeleteFunc(slices.Clone(s.Workers), func(w Worker) bool { return !w.EndedAt.IsZero() })
}

// waited returns those that have ended, late enough to be worth a word, and when the last one did.
func (s *Stop) waited() (ended []Worker, last time.Time) {
	for _, w := range s.Workers {
		if w.EndedAt.Sub(s.ExitedAt) < soon {
			continue
		}
		ended = append(ended, w)
		if w.EndedAt.After(last) {
			last = w.EndedAt
		}
	}
	return ended, last
}

// afterExit returns whom lameduck has waited for when the command had ended.
func (s *Stop) afterExit() (p phrases) {
	ended, last := s.waited()
	if len(ended) > 0 {
		p.add(true, "%s ended %s later", Workers(ended), seconds(last.Sub(s.ExitedAt)))
	}
	if left := s.atWork(); len(left) > 0 {
		p.add(true, "%s still at work", Workers(left))
	}
	unknown := len(s.Workers) == 0 && (s.AwaitWork || s.Linger > 0) && s.Now.Sub(s.ExitedAt) >= soon
	p.add(unknown, "its descendants ended")
	return p
}

// ranOut reports whether the grace period ended before the processes at work did.
func (s *Stop) ranOut() bool {
	return s.Linger == 0 && len(s.atWork()) > 0 && s.after(s.Now) >= s.Grace-stop.ReportMargin
}

// Unreported returns what is wrong at the end of a stop without a report, "" if the grace period was
// long enough.
func (s *Stop) Unreported() string {
	if !s.ranOut() {
		return ""
	}
	text := strings.Join(append(phrases{InWords("the command %s", s.exit())}, s.afterExit()...), ", ")
	return ofGrace(InWords(atTime, text, s.when(s.Now)), s.Grace, s.GraceAssumed) + ": " + workersNeedTime
}

// Workers names processes, the first and the number of the others.
func Workers(list []Worker) string {
	text := InWords("%s (pid %d)", list[0].Program, list[0].PID)
	if more := len(list) - 1; more > 0 {
		text = InWords("%s and %d more", text, more)
	}
	return text
}
