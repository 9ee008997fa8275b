package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestPlayAll plays stops without lameduck: half of the requests between the exit and the
// removal fail, and the row ends with complete columns.
func TestPlayAll(t *testing.T) {
	const shortLag = time.Second
	for name, c := range map[string]struct {
		sleep  time.Duration
		failed int
	}{"bare": {0, 50}, "long enough": {shortLag + 200*time.Millisecond, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p *play
			_, err := perform(func() ([]*play, error) {
				p = &play{contender: &contender{sleep: c.sleep}, lag: shortLag, warm: before, row: &row{each: eachColumn},
					gap:   func() time.Duration { return time.Second / perSecond },
					think: func() time.Duration { return thinking }}
				return []*play{p}, playAll(context.Background(), []*play{p})
			}, func(reason error) { t.Log(reason) })
			if err != nil {
				t.Fatal(err)
			}
			all := p.row.sum()
			if all.Failed < c.failed*3/5 || all.Failed > c.failed*7/5 {
				t.Errorf("%d requests failed, want %d or so", all.Failed, c.failed)
			}
			if all.Ended != len(p.row.Columns)*eachColumn {
				t.Errorf("%d requests in %d columns of %d", all.Ended, len(p.row.Columns), eachColumn)
			}
			if gone := p.row.GoneMS; gone < ms(c.sleep) || gone > ms(c.sleep)+500 {
				t.Errorf("gone after %.0f ms", gone)
			}
		})
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// TestPlayAllInterrupted: all processes have ended when an interrupted run returns.
func TestPlayAllInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &play{contender: &contender{sleep: time.Hour}, lag: time.Hour, row: &row{each: eachColumn},
		gap: func() time.Duration { return time.Second / perSecond },
		think: func() time.Duration {
			cancel()
			return 0
		}}
	if err := playAll(ctx, []*play{p}); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
	for _, r := range []*replica{p.old, p.next} {
		select {
		case <-r.gone:
		default:
			t.Error("a replica is left")
		}
	}
}

// TestPerform: a run in which the machine stood still is played again, and never returned;
// any other error ends the attempts.
func TestPerform(t *testing.T) {
	other := errors.New("other")
	still := stoodStillError{"a request", time.Second}
	var always []error
	for range attempts {
		always = append(always, still)
	}
	for name, c := range map[string]struct {
		errs  []error
		runs  int
		broke string
	}{
		"at once":    {[]error{nil}, 1, ""},
		"again":      {[]error{still, still, nil}, 3, ""},
		"never":      {always, attempts, "8 attempts: repeat the demo"},
		"other":      {[]error{other, nil}, 1, "other"},
		"then other": {[]error{still, other}, 2, "other"},
	} {
		runs, agains := 0, 0
		_, err := perform(func() ([]*play, error) {
			runs++
			return nil, c.errs[runs-1]
		}, func(error) { agains++ })
		if runs != c.runs || agains != runs-1 {
			t.Errorf("%s: %d runs and %d calls of again, want %d runs", name, runs, agains, c.runs)
		}
		if (err == nil) != (c.broke == "") || err != nil && !strings.Contains(err.Error(), c.broke) {
			t.Errorf("%s: ended with %v", name, err)
		}
	}
}

// TestSenderStandsStill: an answer that is late ends the run.
func TestSenderStandsStill(t *testing.T) {
	var got error
	s := &sender{failed: func(err error) { got = err }}
	s.judge("an answer", tooLate)
	if got != nil {
		t.Errorf("%v counts as standing still", tooLate)
	}
	s.judge("an answer", tooLate+time.Millisecond)
	if !errors.As(got, &stoodStillError{}) {
		t.Errorf("%v is no reason to play again", got)
	}
}

// TestWatch: a run that does not count leaves nothing on the screen.
func TestWatch(t *testing.T) {
	for _, live := range []bool{false, true} {
		var out bytes.Buffer
		c := &screen{out: &out, s: &plain, live: live}
		r := &row{Name: "bare", each: eachColumn}
		c.watch([]*row{r}, lag)(false)
		if shown := strings.Contains(out.String(), "bare"); shown != strings.Contains(out.String(), "\x1b[J") {
			t.Errorf("live %v: a discarded run leaves %q", live, &out)
		}
		c.watch([]*row{r}, lag)(true)
		if !strings.HasSuffix(out.String(), "bare      \n") {
			t.Errorf("live %v: a run that counts leaves %q", live, &out)
		}
	}
}
