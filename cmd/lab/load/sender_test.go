package load

import (
	"context"
	"testing"
	"time"
)

// TestSettled: of the begun requests, the first pending request bounds Settled.
func TestSettled(t *testing.T) {
	s := &Sender{}
	for range 3 {
		s.Begin(time.Now().Add(-2 * time.Second))
	}
	s.End(0, Answered)
	s.End(2, Refused)
	got := s.Count()
	if got.Settled != 1 || got.Sent != 3 || Ended(got.Kinds) != 2 || Failed(got.Kinds) != 1 || got.LateMS < 2000 {
		t.Errorf("%+v", got)
	}
	s.End(1, Answered)
	if got := s.Count(); got.Settled != 3 || Summary(got.Kinds) != "1 refused" {
		t.Errorf("%+v", got)
	}
}

// TestSend: requests are sent at their times, whatever becomes of the first.
func TestSend(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &Sender{Began: time.Now()}
	asked := make(chan bool)
	ask := func(planned time.Time) Kind {
		switch n := planned.Sub(s.Began).Milliseconds(); n {
		case 0:
			<-asked // not before the third
		case 2:
			close(asked)
		case 3:
			cancel()
		}
		return Answered
	}
	s.Send(ctx, func() (time.Duration, func(time.Time) Kind) { return time.Millisecond, ask })
	if got := s.Count(); got.Sent < 4 || got.Settled != got.Sent {
		t.Errorf("%+v", got)
	}
}
