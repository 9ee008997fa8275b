package shim

import (
	"fmt"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/stderr"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Quote returns a value from outside for people to read: in quotes where the value
// could be mistaken for something else.
func Quote(value string) string { return quote.Word(value) }

// Printable returns text as one line that can be printed, whatever is in the text.
func Printable(text string) string { return quote.Line(text) }

// Say writes one line to standard error, an error that ends us, and waits no more
// than a moment for it to be read.
func Say(text string, inJSON bool) {
	out := speaker(2, inJSON)
	if inJSON {
		text = jsonLine(levels[Error], text, nil)
	} else {
		text = "lameduck: " + text
	}
	out.Line(text)
	out.Flush()
}

// speaker is a writer to fd whose own words are in JSON too, if all are.
func speaker(fd int, inJSON bool) *stderr.Writer {
	out := stderr.New(fd)
	if inJSON {
		out.DroppedText = func(n int) string {
			return jsonLine(levels[Warn], fmt.Sprintf("%d lines dropped: standard error was not read in time", n), nil)
		}
	}
	return out
}

// levels are the words for them in JSON.
var levels = [...]string{Error: "error", Warn: "warn", Info: "info", Debug: "debug"}

// log says something where the level asks for it, with the flags in format spelled as
// they are to be given.
func (l *loop) log(level Level, format string, args ...any) {
	if level > l.cfg.Level {
		return
	}
	text := fmt.Sprintf(l.cfg.Spelling.In(format), args...)
	switch {
	case l.cfg.JSON:
		l.line(jsonLine(levels[level], text, nil))
	case level == Warn:
		l.line("lameduck: warning: " + text)
	default:
		l.line("lameduck: " + text)
	}
}

// report says text at any level.
func (l *loop) report(text string) { l.say(text, nil) }

func (l *loop) say(text string, f *figures) {
	if l.cfg.JSON {
		text = jsonLine(levels[Info], text, f)
	} else {
		text = "lameduck: " + text
	}
	l.line(text)
}

// account is all there is to report now.
func (l *loop) account() *drain {
	return &drain{plan: &l.plan, Record: l.machine.Record(), Snapshot: l.seen, late: l.late, now: time.Now(), deaf: l.deaf}
}

// declare says a line of the report, and puts it into the termination log.
func (l *loop) declare(line func(*drain) string) {
	d := l.account()
	text := line(d)
	l.say(text, d.figures())
	l.write(d, text)
}

// write puts a line of the report into the termination log, which is a command's
// own that has failed by itself.
func (l *loop) write(d *drain, text string) {
	if l.cfg.JSON {
		text = jsonLine(levels[Info], text, d.figures())
	}
	if d.Ended == stop.ChildExit && (d.Exit.Signal != 0 || d.Exit.Code != 0) {
		text = ""
	}
	if err := l.note(text); err != nil && !l.mute {
		l.mute = true
		l.log(Warn, "the termination log cannot be written: %v", err)
	}
}
