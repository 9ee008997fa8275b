package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// stop is the outcome of stopping one replica.
type stop struct {
	drawn
	LagMS    float64           `json:"lag_ms"`
	StopMS   float64           `json:"stop_ms"` // from the stop signal to the exit
	Killed   bool              `json:"killed"`  // at the end of the grace period
	Requests int               `json:"requests"`
	Failed   map[load.Kind]int `json:"failed,omitempty"`
	Lost     int               `json:"lost"` // long-lived connections
	Report   string            `json:"report,omitempty"`
	Ended    string            `json:"ended,omitempty"` // why, by the report

	began  time.Time
	extras []time.Duration // of answered requests
}

// stop stops a replica. The clock of the lag starts with the stop signal. stop returns when
// the replica is gone and removed from the balancer.
func (a *arena) stop(ctx context.Context, old *replica, lag drawn) (*stop, error) {
	select {
	case <-old.gone:
		return nil, fmt.Errorf("a replica ended before the stop: %s", &old.stderr)
	default:
	}
	s := &stop{drawn: lag, LagMS: ms(lag.Lag), began: time.Now()}
	removed, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		failed <- a.remove(old, s.began, lag)
		close(removed)
	}()
	// The grace period is not scaled: lameduck needs its last second.
	timer := time.AfterFunc(a.server.gracePeriod(), func() { old.cmd.Process.Kill() })
	go a.contender.stop(a.o.scale, a.server, old.cmd.Process, old.gone, removed)
	<-old.gone
	s.Killed = !timer.Stop()
	<-removed
	s.StopMS = ms(old.at.Sub(s.began))
	if a.contender.init == "lameduck" {
		s.Report = old.report()
		s.Ended = ended(old.stderr.String())
	}
	return s, <-failed
}

// ended returns the reason for the end of a hold, and whether the signal was sent at a
// lull, or "" if no line of a replica's standard error has a reason. lameduck's lines are
// JSON; see docs/production.md.
func ended(stderr string) (reason string) {
	for line := range strings.Lines(stderr) {
		var report struct {
			Ended string `json:"ended"`
			Lull  bool   `json:"lull"`
		}
		if json.Unmarshal([]byte(line), &report) != nil || report.Ended == "" {
			continue
		}
		reason = report.Ended
		if report.Lull {
			reason += " at a lull"
		}
	}
	return reason
}

// remove removes a replica from the balancer, late.
func (a *arena) remove(old *replica, began time.Time, lag drawn) error {
	if k, ok := a.balancer.(*kubeProxy); ok && a.server.stragglers {
		time.Sleep(time.Until(began.Add(lag.most)))
		k.removeSoon(old)
	}
	time.Sleep(time.Until(began.Add(lag.Lag)))
	return a.balancer.remove(old)
}

// count adds a result from the time of this stop.
func (s *stop) count(r result) {
	switch r.kind {
	case lost:
		s.Lost++
		return
	case load.Answered:
		s.extras = append(s.extras, r.extra)
	default:
		if s.Failed == nil {
			s.Failed = map[load.Kind]int{}
		}
		s.Failed[r.kind]++
	}
	s.Requests++
}

// failed returns the number of failed requests.
func (s *stop) failed() (n int) {
	for _, k := range s.Failed {
		n += k
	}
	return n
}
