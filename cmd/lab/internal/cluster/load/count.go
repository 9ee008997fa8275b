package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/lameduck-init/lameduck/testdata/k8s/tally"
)

// slow is how long an answer may take; one that lost its first SYN takes longer.
const slow = time.Second

// count counts requests, each of which has a goroutine.
type count struct {
	mu      sync.Mutex
	sum     tally.Tally
	pending map[int]bool // the numbers of those under way
}

func newCount() *count {
	return &count{sum: tally.Tally{Kinds: map[tally.Kind]int{}}, pending: map[int]bool{}}
}

// begin counts one that begins so late, and gives its number.
func (c *count) begin(late time.Duration) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.sum.Sent
	c.sum.Sent++
	c.sum.LateMS = max(c.sum.LateMS, int(late.Milliseconds()))
	c.pending[number] = true
	return number
}

// end counts how one ended, so long after its planned time.
func (c *count) end(number int, kind tally.Kind, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, number)
	c.sum.Kinds[kind]++
	if kind == tally.Answered && took > slow {
		c.sum.Slow++
	}
}

// tally is what has been counted so far.
func (c *count) tally() tally.Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.Settled = c.sum.Sent
	for number := range c.pending {
		c.sum.Settled = min(c.sum.Settled, number)
	}
	c.sum.Load = max(c.sum.Load, average())
	sum := c.sum
	sum.Kinds = maps.Clone(c.sum.Kinds)
	return sum
}

// average is the machine's load average of the last minute, or 0.
func average() (load float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	fmt.Fscan(bytes.NewReader(text), &load)
	return load
}
