package traffic

import (
	"testing"
	"time"
)

// TestKeptTransfer: a transfer in one direction is not a client that never lets go, before
// or after the trigger. Requests in turn are.
func TestKeptTransfer(t *testing.T) {
	turns := life{open: s(-9)}
	for at := 0.0; at < 50; at += 0.3 {
		turns.moves = append(turns.moves, move{s(at - 3), 9}, move{s(at - 2.98), -9})
	}
	download := life{open: s(1), moves: []move{{s(1), 9}}}
	upload := life{open: s(-5)}
	for at := 1.1; at < 40; at += 0.1 {
		download.moves = append(download.moves, move{s(at), -1000})
		upload.moves = append(upload.moves, move{s(at - 6), 1000})
	}
	for name, c := range map[string]struct {
		lives []life
		want  float64
	}{
		"requests in turn":              {[]life{turns}, 15},
		"and a download until 40 s":     {[]life{turns, download}, 41},
		"and an upload until 34 s":      {[]life{turns, upload}, 60}, // then the client waits for a response
		"a download alone":              {[]life{download}, 41},
		"and a connection at 2 s":       {[]life{turns, request.moved(s(2))}, 15},
		"and two connections at 2 s":    {[]life{turns, request.moved(s(2)), request.moved(s(2.1))}, 17.25},
		"and a connection every 5 s":    {append(every(s(5), s(2), s(50), request), turns), 15},
		"and a connection every second": {append(differing(60, 60), turns), 60},
	} {
		w := world{lives: c.lives, events: true, Config: Config{Probes: IgnoreProbesPatiently}}
		got, _ := w.until(never, func(v Verdict) bool { return v.Kept })
		if got < s(c.want) || got > s(c.want+1) {
			t.Errorf("%s: %v, want %v", name, got, s(c.want))
		}
	}
}

// moved returns the connection, later.
func (l life) moved(by time.Duration) life { return every(time.Hour, by, by+1, l)[0] }
