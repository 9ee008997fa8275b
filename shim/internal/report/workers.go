package report

import (
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// soon is a time that is not worth a word: what comes within it comes at once.
const soon = 100 * time.Millisecond

// workers returns the processes at work that the command has left behind: those that have ended, late
// enough to be worth a word, and those that have not.
func (s *Stop) workers() (ended, atWork []Worker) {
	for _, w := range s.Workers {
		switch {
		case w.EndedAt.IsZero():
			atWork = append(atWork, w)
		case w.EndedAt.Sub(s.ExitedAt) >= soon:
			ended = append(ended, w)
		}
	}
	return ended, atWork
}

// afterExit returns whom lameduck has waited for when the command had ended.
func (s *Stop) afterExit() (p phrases) {
	ended, atWork := s.workers()
	if len(ended) > 0 {
		var later time.Duration
		for _, w := range ended {
			later = max(later, w.EndedAt.Sub(s.ExitedAt))
		}
		p.say("%s ended %s later", Workers(ended), seconds(later))
	}
	if len(atWork) > 0 {
		p.say("%s still at work", Workers(atWork))
	}
	waited := !s.ExitedAt.IsZero() && (s.Stop.AwaitWork || s.Linger > 0) && s.Now.Sub(s.ExitedAt) >= soon
	p.add(waited && len(s.Workers) == 0, "its descendants ended")
	return p
}

// ranOut reports whether the grace period ended before the processes at work did.
func (s *Stop) ranOut() bool {
	_, atWork := s.workers()
	return s.Linger == 0 && len(atWork) > 0 && s.after(s.Now) >= s.Stop.Grace-stop.ReportMargin
}

// Unreported returns what is wrong at the end of a stop without a report, "" if the grace period was
// long enough.
func (s *Stop) Unreported() string {
	if !s.ranOut() {
		return ""
	}
	text := strings.Join(append(phrases{"the command " + s.exit()}, s.afterExit()...), ", ")
	return ofGrace(s.atNow(text), s.Plan) + ": " + workersNeedTime
}

// Workers names processes, the first and the number of the others.
func Workers(list []Worker) string {
	text := InWords("%s (pid %d)", list[0].Program, list[0].PID)
	if more := len(list) - 1; more > 0 {
		text = InWords("%s and %d more", text, more)
	}
	return text
}
