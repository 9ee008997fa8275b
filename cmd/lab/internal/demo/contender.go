package main

import (
	"os"
	"syscall"
	"time"
)

// contender is one way to stop a server.
type contender struct {
	name   string
	how    string        // in words
	sleep  time.Duration // of a preStop hook, before TERM
	prefix []string      // the words before the server's
	server []string      // the arguments of the server
}

const (
	tooShort   = 2 * time.Second
	longEnough = 10 * time.Second
)

// contenders returns the contenders in the order of the rows. The grace period is that of
// Kubernetes; all else are lameduck's defaults.
func contenders(lameduck string) []*contender {
	return []*contender{
		{name: "bare", how: "TERM at once"},
		{name: "sleep 2", how: "TERM after a preStop sleep of 2 s: too short", sleep: tooShort},
		{name: "sleep 10", how: "TERM after a preStop sleep of 10 s: long enough", sleep: longEnough},
		{name: "lameduck", how: "TERM at once, to lameduck --until=quiet --grace-period=30 -- server",
			prefix: []string{lameduck, "--until=quiet", "--grace-period=30", "--"}},
	}
}

// command returns the words that start the server.
func (c *contender) command(exe string) []string {
	return append(append(c.prefix[:len(c.prefix):len(c.prefix)], exe, "serve"), c.server...)
}

// stop stops a process as an orchestrator does. gone is closed if the process exits early.
func (c *contender) stop(p *os.Process, gone <-chan struct{}) {
	select {
	case <-time.After(c.sleep):
		p.Signal(syscall.SIGTERM)
	case <-gone:
	}
}
