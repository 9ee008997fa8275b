package load

import (
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// TestStop: a proxy and the server behind answer on a kept connection during the stop, announce the
// close, and accept no new connection. In the end, requests that have been read are answered, and
// kept connections closed.
func TestStop(t *testing.T) {
	server, proxy := serve(t), serve(t)
	proxy.Upstream = server.Addr().String()
	deadline := time.Now().Add(time.Minute)
	conn, err := Dial(proxy.Addr().String(), deadline)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if answer, err := conn.HTTP("/", "duck", true); err != nil || answer != (Answer{200, true}) {
		t.Errorf("before the stop %+v, %v", answer, err)
	}
	stopped := make(chan bool)
	go func() {
		proxy.Stop(3 * time.Second) // enough for a request on a busy machine
		close(stopped)
	}()
	for !proxy.announces.Load() { // Stop sets announces first
		time.Sleep(time.Millisecond)
	}
	if answer, err := conn.HTTP("/", "duck", true); err != nil || answer != (Answer{200, false}) {
		t.Errorf("during the stop %+v, %v", answer, err)
	}
	<-stopped
	if late, err := net.Dial("tcp", proxy.Addr().String()); err == nil {
		late.Close()
		t.Error("the listener still accepts")
	}
	for next, want := range map[string]bool{"": false, "GET /200ms HTTP/1.1\r\n\r\n": true} {
		server := serve(t)
		conn, err := Dial(server.Addr().String(), deadline)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// The server reads both requests at once: the second is in work after the first answer.
		io.WriteString(conn, "GET /0s HTTP/1.1\r\n\r\n"+next)
		read := func() bool {
			_, _, err := conn.Head()
			_, bad := io.ReadFull(conn.In, make([]byte, len("served")))
			return err == nil && bad == nil
		}
		if !read() {
			t.Fatal("no answer")
		}
		server.Stop(0)
		if answered := read(); answered != want {
			t.Errorf("%q: answered %v", next, answered)
		}
	}
}

// TestWebSocket: messages are answered.
func TestWebSocket(t *testing.T) {
	conn, err := Dial(serve(t).Addr().String(), time.Now().Add(time.Minute))
	if err != nil || conn.Upgrade() != Answered || conn.Chat() != nil || conn.Chat() != nil {
		t.Error("no answer", err)
	}
}

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
	if got := len(s.Results()); got < 4 || s.Settled != got {
		t.Errorf("%d of %d requests have ended", s.Settled, got)
	}
}
