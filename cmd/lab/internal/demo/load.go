package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// requestTimeout bounds a request, beyond the server's thinking time.
const requestTimeout = 5 * time.Second

// tooLate is the delay of a request, behind the plan or of its answer, from which on the
// machine counts as standing still.
const tooLate = 500 * time.Millisecond

// sender is an open-loop load: requests are sent at planned times, whatever becomes of
// earlier requests.
type sender struct {
	addr   string
	began  time.Time
	gap    func() time.Duration // from a planned time to the next
	think  func() time.Duration // of the server, for the next request
	row    *row
	end    atomic.Int64 // from began, in nanoseconds: no request is planned later; 0: unknown
	failed func(error)  // ends the run: the machine stood still
}

// run sends until the end, and returns when all requests have ended.
func (s *sender) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for at := s.began; s.sleep(ctx, at); at = at.Add(s.gap()) {
		think := s.think()
		all.Go(func() {
			answered := get(s.addr, think) == nil
			s.judge("an answer", time.Since(at)-think)
			s.row.add(at.Sub(s.began), answered)
		})
	}
}

// sleep sleeps until a planned time, and reports false at the end.
func (s *sender) sleep(ctx context.Context, at time.Time) bool {
	select {
	case <-time.After(time.Until(at)):
	case <-ctx.Done():
		return false
	}
	end := s.end.Load()
	if end > 0 && at.Sub(s.began) >= time.Duration(end) {
		return false
	}
	s.judge("a request", time.Since(at))
	return true
}

// judge ends the run if something is too late.
func (s *sender) judge(what string, late time.Duration) {
	if late > tooLate {
		s.failed(stoodStillError{what, late})
	}
}

// stoodStillError is the reason why a run does not count.
type stoodStillError struct {
	what string
	late time.Duration
}

func (e stoodStillError) Error() string {
	return fmt.Sprintf("the machine stood still: %s was %.1f s late", e.what, e.late.Seconds())
}

// get makes one request, with a connection of its own. The error is nil if the server
// answered.
func get(addr string, think time.Duration) error {
	deadline := time.Now().Add(think + requestTimeout)
	conn, err := (&net.Dialer{Deadline: deadline}).Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(deadline)
	if _, err := fmt.Fprintf(conn, "GET /%v HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n", think); err != nil {
		return err
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return err
	}
	if string(text) != served {
		status, _, _ := strings.Cut(string(text), "\r\n")
		return fmt.Errorf("the answer is %q", status)
	}
	return nil
}
