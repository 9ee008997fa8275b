package bench

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// hold boots a lameduck that holds for the crowd's connections until a second TERM, and says so
// on the box's lines. The command sleeps.
func (c *crowd) hold(lameduck contender) *box {
	lameduck.prefix = []string{lameduck.prefix[0], "--log-format=json", "--until=drained", "--delay=0", "--max-delay=60",
		"--grace-period=90", fmt.Sprintf("--count-port=%d", c.addr.Port), "--"}
	h := lameduck.box(true, "/bin/sh", "-c", "echo ready; exec sleep 1000")
	for !strings.HasPrefix(h.line(), "ready") {
	}
	h.stop()
	return h
}

// stop sends TERM and returns the line that lameduck writes.
func (h *box) stop() string {
	must.Do(unix.Kill(h.pid, unix.SIGTERM))
	return h.line()
}

func (h *box) line() string { return must.Get(h.lines.ReadString('\n')) }

// perTenSeconds is the number of samples in ten seconds of a hold by default.
const perTenSeconds = 40

// hold measures the processor time of three holds, scaled to ten seconds, and of ss, run once
// for each sample.
func (b *bench) hold(lameduck contender, c *crowd, path string) {
	length := b.length(10 * time.Second)
	for range 3 {
		h := c.hold(lameduck)
		before := h.cpu()
		time.Sleep(length)
		b.add(hold, ours, micro(h.cpu()-before)/1000*10/length.Seconds())
		h.close()
	}
	for range samples / b.less {
		b.add(hold, ss, micro(c.ss(path))/1000*perTenSeconds)
	}
}

// A rush is rushRate short connections a second, in rushParts bursts.
const (
	rushRate   = 10_000
	rushParts  = 100
	rushLength = 5 * time.Second
)

// rush counts the short connections that are missing from the report of a hold. A report
// that says "at least" misses none.
func (b *bench) rush(lameduck contender) {
	c := newCrowd()
	h := c.hold(lameduck)
	time.Sleep(settle) // the first samples come after the trigger
	start := time.Now()
	for next := start; time.Since(start) < rushLength; {
		for range rushRate / rushParts {
			client, server := c.connect()
			must.Do(errors.Join(unix.Close(client), unix.Close(server)))
		}
		next = next.Add(time.Second / rushParts)
		time.Sleep(time.Until(next))
	}
	rate := float64(c.made) / time.Since(start).Seconds()
	time.Sleep(time.Second) // for one more sample; and a TERM earlier would count as a double
	report := h.stop()
	found := newConnections.FindStringSubmatch(report)
	must.Be(found != nil, "the report has no new connections: %s", report)
	counted := must.Get(strconv.Atoi(found[2]))
	if found[1] != "" {
		counted = max(counted, c.made)
	}
	b.add(unseen, ours, float64(c.made-counted))
	fmt.Fprintf(b.out, "%d short connections, %.0f a second: the report has %s\n", c.made, rate, found[0])
}

var newConnections = regexp.MustCompile(`(at least )?(\d+) new connections`)
