package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// findings are the results of a run.
type findings struct {
	Seed    uint64   `json:"seed"`
	Scale   scale    `json:"scale"`
	Seconds float64  `json:"seconds"`
	Trials  []*trial `json:"trials"`
}

// part sums up some of the stops.
type part struct {
	stops    int
	losing   int // stops with a failed request
	requests int
	failed   int
	kinds    map[load.Kind]int
	ended    map[string]int // holds, by their ends in lameduck's report
	lost     int
	killed   int
	times    []float64 // from the stop signal to the exit, in milliseconds
}

// part sums up the stops of a contender with the servers of a scene for which of is true, or
// with all if of is nil. Times leave out long-lived connections, which last to the ceiling,
// and trials in which the machine stood still are left out of all.
func (f *findings) part(in scene, contender string, of func(*server) bool) *part {
	p := &part{}
	for _, t := range f.Trials {
		if t.Contender != contender || t.server.scene != in || t.Stalled || of != nil && !of(t.server) {
			continue
		}
		for _, s := range t.Stops {
			p.add(s)
			if !t.server.has("websocket") {
				p.times = append(p.times, s.StopMS)
			}
		}
	}
	slices.Sort(p.times)
	return p
}

func (p *part) add(s *stop) {
	if p.stops == 0 {
		p.kinds, p.ended = map[load.Kind]int{}, map[string]int{}
	}
	p.stops++
	p.requests += s.Requests
	p.lost += s.Lost
	for k, n := range s.Failed {
		p.failed += n
		p.kinds[k] += n
	}
	if len(s.Failed) > 0 {
		p.losing++
	}
	if s.Killed {
		p.killed++
	}
	if reason := s.ended(); reason != "" {
		p.ended[reason]++
	}
}

// ended returns the reason for the end of a hold, and whether the signal was sent at a
// lull, or "".
func (s *stop) ended() (reason string) {
	for _, r := range s.Reports {
		if r.Ended == "" {
			continue
		}
		reason = r.Ended
		if r.Lull {
			reason += " at a lull"
		}
	}
	return reason
}

// losesNone reports whether there were stops and no request failed.
func (p *part) losesNone() bool { return p.stops > 0 && p.failed == 0 && p.killed == 0 }

// quantile returns the time that a share of the times do not exceed, in milliseconds.
func (p *part) quantile(share float64) float64 {
	if len(p.times) == 0 {
		return 0
	}
	return p.times[int(math.Round(share*float64(len(p.times)-1)))]
}

func (p *part) median() float64 { return p.quantile(0.5) }

// how lists the kinds of failures, and the reasons for the ends of holds.
func (p *part) how() string {
	var words []string
	if p.failed > 0 {
		words = append(words, load.Summary(p.kinds))
	}
	if p.lost > 0 {
		words = append(words, fmt.Sprintf("%d connections lost", p.lost))
	}
	for _, reason := range slices.Sorted(maps.Keys(p.ended)) {
		words = append(words, fmt.Sprintf("%s %d", reason, p.ended[reason]))
	}
	return strings.Join(words, ", ")
}

// save writes the findings to a file.
func (f *findings) save(path string) error {
	text, err := json.Marshal(f)
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot write the figures: %w", err)
	}
	return nil
}

// readFindings returns findings that were saved.
func readFindings(path string) (*findings, error) {
	f := &findings{}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, f)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the figures: %w", err)
	}
	for _, t := range f.Trials {
		t.server = serverOf(t.Server)
	}
	return f, nil
}
