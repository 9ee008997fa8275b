package load

import (
	"context"
	"testing"
	"time"
)

// TestSend: requests are sent at their times, whatever becomes of the first, which bounds Settled.
func TestSend(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &Sender{Began: time.Now().Add(-2 * time.Second)}
	asked := make(chan bool)
	ask := func(planned time.Time) Kind {
		switch n := planned.Sub(s.Began).Milliseconds(); n {
		case 0:
			<-asked // not before the third
			return Refused
		case 2:
			if got := s.Count(); got.Sent < 3 || got.Settled > 0 {
				t.Errorf("%+v", got)
			}
			close(asked)
		case 3:
			cancel()
		}
		return Answered
	}
	s.Send(ctx, func() (time.Duration, func(time.Time) Kind) { return time.Millisecond, ask })
	got := s.Count()
	failed := Failed(got.Kinds) == 1 && Summary(got.Kinds) == "1 refused"
	if got.Sent < 4 || got.Settled != got.Sent || got.LateMS < 2000 || !failed {
		t.Errorf("%+v", got)
	}
}
