package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// slow bounds the time to an answer. After the loss of the first SYN an answer takes
// longer.
const slow = time.Second

// count counts requests. Each request has a goroutine.
type count struct {
	mu    sync.Mutex
	sum   load.Tally
	ended []bool // by the number of the request
}

func newCount() *count {
	return &count{sum: load.Tally{Kinds: map[load.Kind]int{}}}
}

// begin counts a request that begins late behind the plan, and returns the number of the
// request.
func (c *count) begin(late time.Duration) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.Sent++
	c.sum.LateMS = max(c.sum.LateMS, int(late.Milliseconds()))
	c.ended = append(c.ended, false)
	return c.sum.Sent - 1
}

// end counts the end of a request, took after the planned time.
func (c *count) end(number int, kind load.Kind, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended[number] = true
	for c.sum.Settled < c.sum.Sent && c.ended[c.sum.Settled] {
		c.sum.Settled++
	}
	c.sum.Kinds[kind]++
	if kind == load.Answered && took > slow {
		c.sum.Slow++
	}
}

// tally returns the counts so far.
func (c *count) tally() load.Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.Load = max(c.sum.Load, average())
	sum := c.sum
	sum.Kinds = maps.Clone(c.sum.Kinds)
	return sum
}

// average returns the machine's load average of the last minute, or 0.
func average() (average float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	fmt.Fscan(bytes.NewReader(text), &average)
	return average
}
