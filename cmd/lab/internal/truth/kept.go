package truth

import (
	"fmt"
	"slices"
	"time"
)

// raceLimit is the longest time from a request to a failure by the race, in which the
// server closes an idle connection while a request is on the way. The race takes a round
// trip at most, and longer on a busy machine. Servers that cut requests in progress also
// cut requests of 300 ms, half of them later than the limit.
const raceLimit = 150 * ms

// keptTally has the observations of clients with kept connections in a trial.
type keptTally struct {
	Requests int
	Raced    []time.Duration // from the request to the failure, of requests lost in the race
	Cut      []time.Duration // the same, of requests that failed later
	Closed   []time.Duration // when the server closed each connection, relative to TERM
	FirstCut string          // a moment and an error
}

// noteKept counts a request by duration and error.
func (t *trial) noteKept(took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Requests++
	switch {
	case err == nil:
	case took < raceLimit:
		t.kept.Raced = append(t.kept.Raced, took)
	case len(t.kept.Cut) == 0:
		t.kept.FirstCut = fmt.Sprintf("%s: after %v: %v", seconds(time.Since(t.term)), took.Round(ms), err)
		fallthrough
	default:
		t.kept.Cut = append(t.kept.Cut, took)
	}
}

// noteClosed counts a connection closed by the server.
func (t *trial) noteClosed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Closed = append(t.kept.Closed, time.Since(t.term))
}

// judgeKept notes losses that a server with ClosesKept must not have.
func (t *trial) judgeKept() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept.Cut) > 0 {
		t.lost = append(t.lost, t.kept.FirstCut)
	}
	if open := keptConns - len(t.kept.Closed); open > 0 {
		t.lost = append(t.lost, fmt.Sprintf("%s: %d of %d connections are still open", seconds(keptPatience), open, keptConns))
	}
	if len(t.kept.Closed) > 0 && slices.Min(t.kept.Closed) < 0 {
		t.lost = append(t.lost, seconds(slices.Min(t.kept.Closed))+": the server closed a connection before the signal")
	}
}

// keptTotals sums up the tallies of a row.
type keptTotals struct {
	stops, requests, open int
	racedIn, cutIn        int             // stops
	raced, cut            []time.Duration // as in keptTally
	lastClosed            []time.Duration // of each stop, from the signal
}

func (total *keptTotals) add(r *result) {
	total.stops++
	total.requests += r.Kept.Requests
	total.open += keptConns - len(r.Kept.Closed)
	total.raced = append(total.raced, r.Kept.Raced...)
	total.cut = append(total.cut, r.Kept.Cut...)
	if len(r.Kept.Raced) > 0 {
		total.racedIn++
	}
	if len(r.Kept.Cut) > 0 {
		total.cutIn++
	}
	if len(r.Kept.Closed) > 0 {
		total.lastClosed = append(total.lastClosed, slices.Max(r.Kept.Closed)-r.Signal)
	}
}

// keptSummary returns a row's words about kept connections, or "".
func keptSummary(results []*result) string {
	var total keptTotals
	for _, r := range results {
		if r.Err == "" && r.Kept != nil {
			total.add(r)
		}
	}
	if total.stops == 0 {
		return ""
	}
	text := fmt.Sprintf("; %d requests in %d stops: %d lost the race in %d stops", total.requests, total.stops, len(total.raced), total.racedIn)
	if len(total.raced) > 0 {
		text += fmt.Sprintf(" (median %v after they were sent)", median(total.raced))
	}
	text += fmt.Sprintf(", %d were cut in %d stops", len(total.cut), total.cutIn)
	if total.open > 0 {
		text += fmt.Sprintf(", %d connections stayed open", total.open)
	}
	if len(total.lastClosed) > 0 {
		text += fmt.Sprintf("; all closed %v after the signal (median), %v (longest)", median(total.lastClosed), slices.Max(total.lastClosed).Round(ms))
	}
	return text
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2].Round(ms / 10)
}
