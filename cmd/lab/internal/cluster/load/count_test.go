package main

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// TestSettled: of the begun requests, the first pending request bounds Settled.
func TestSettled(t *testing.T) {
	c := newCount()
	for range 3 {
		c.begin(0)
	}
	c.end(0, load.Answered, 2*slow)
	c.end(2, load.Refused, time.Millisecond)
	if got := c.tally(); got.Settled != 1 || got.Sent != 3 || got.Ended() != 2 || got.Failed() != 1 || got.Slow != 1 {
		t.Errorf("%+v", got)
	}
	c.end(1, load.Answered, 0)
	if got := c.tally(); got.Settled != 3 || got.Summary() != "1 refused" {
		t.Errorf("%+v", got)
	}
}
