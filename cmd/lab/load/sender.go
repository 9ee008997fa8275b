package load

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Sender is an open-loop load: requests are sent at planned times, whatever becomes of earlier
// requests.
type Sender struct {
	Began   time.Time
	mu      sync.Mutex // every request has a goroutine, and others read the results
	results []Result
	lateMS  int
}

// Result is how a request ended, or a zero time in At while the request is under way.
type Result struct {
	At   time.Time
	Kind Kind
}

// Tally counts the results.
type Tally struct {
	Sent    int          `json:"sent"`    // requests begun
	Settled int          `json:"settled"` // the first so many of Sent have ended
	Kinds   map[Kind]int `json:"kinds"`
	LateMS  int          `json:"late_ms"` // the longest delay behind the plan
}

// Reset forgets the results, and begins anew.
func (s *Sender) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Began, s.results, s.lateMS = time.Now(), nil, 0
}

// Send sends each request at its planned time, until ctx ends, and returns when all have ended.
// next returns a request, and the pause after it.
func (s *Sender) Send(ctx context.Context, next func() (pause time.Duration, ask func(planned time.Time) Kind)) {
	var all sync.WaitGroup
	defer all.Wait()
	for at := s.Began; Sleep(ctx, time.Until(at)) == nil; {
		s.Late(time.Since(at))
		s.mu.Lock()
		number, planned := len(s.results), at
		s.results = append(s.results, Result{})
		s.mu.Unlock()
		pause, ask := next()
		all.Go(func() {
			kind := ask(planned)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.results[number] = Result{time.Now(), kind}
		})
		at = at.Add(pause)
	}
}

// Late notes a delay, of a request or an answer.
func (s *Sender) Late(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lateMS = max(s.lateMS, int(by.Milliseconds()))
}

// Results returns the results, in the order of the plan.
func (s *Sender) Results() []Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.results)
}

// Count returns the counts so far.
func (s *Sender) Count() Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := Tally{Sent: len(s.results), Kinds: map[Kind]int{}, LateMS: s.lateMS}
	for i, r := range s.results {
		if r.At.IsZero() {
			continue
		}
		t.Kinds[r.Kind]++
		if t.Settled == i {
			t.Settled++
		}
	}
	return t
}

// Sleep returns an error if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ended returns the number of requests that have ended.
func Ended(kinds map[Kind]int) (sum int) {
	for _, n := range kinds {
		sum += n
	}
	return sum
}

// Failed returns the number of requests that failed.
func Failed(kinds map[Kind]int) int { return Ended(kinds) - kinds[Answered] }

// Summary lists the kinds of failures: "12 refused, 3 timeout".
func Summary(kinds map[Kind]int) string {
	var parts []string
	for _, kind := range Failures {
		if n := kinds[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(parts, ", ")
}
