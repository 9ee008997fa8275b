package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// stop is what came of stopping one replica.
type stop struct {
	drawn
	LagMS    float64           `json:"lag_ms"`
	StopMS   float64           `json:"stop_ms"` // from the stop signal to its exit
	Killed   bool              `json:"killed"`  // at the end of the grace period
	Requests int               `json:"requests"`
	Failed   map[load.Kind]int `json:"failed,omitempty"`
	Lost     int               `json:"lost"` // long-lived connections
	Report   string            `json:"report,omitempty"`

	began  time.Time
	said   string          // by lameduck
	extras []time.Duration // of those that were answered
}

// stop stops a replica; the clock of the lag starts with the stop signal. It
// returns when the replica has gone and the balancer knows.
func (a *arena) stop(ctx context.Context, old *replica, lag drawn) (*stop, error) {
	select {
	case <-old.gone:
		return nil, fmt.Errorf("a replica ended by itself: %s", &old.stderr)
	default:
	}
	s := &stop{drawn: lag, LagMS: ms(lag.Lag), began: time.Now()}
	removed, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		time.Sleep(time.Until(s.began.Add(lag.Lag)))
		failed <- a.balancer.remove(old)
		close(removed)
	}()
	// KILL is real time: a scaled one would not leave lameduck its second.
	timer := time.AfterFunc(grace, old.slay)
	go a.contender.stop(a.o.scale, a.server, old.cmd.Process, old.gone, removed)
	<-old.gone
	s.Killed = !timer.Stop()
	<-removed
	s.StopMS = ms(old.at.Sub(s.began))
	if a.contender.init == "lameduck" {
		s.said, s.Report = old.stderr.String(), old.report()
	}
	return s, <-failed
}

// count takes a result that fell into this stop's time.
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

// failed is how many requests failed.
func (s *stop) failed() (n int) {
	for _, k := range s.Failed {
		n += k
	}
	return n
}
