package bench

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// held is a lameduck that holds until a second TERM, and the lines on stderr.
type held struct {
	*box
	lines *bufio.Reader
}

// hold boots a lameduck that holds for the crowd's connections. The command sleeps.
func (c *crowd) hold(lameduck contender) *held {
	h := c.holdWith(lameduck, "--log-format=json", "--until=drained", "--delay=0", "--max-delay=60", "--grace-period=90")
	h.stop()
	return h
}

// holdWith boots a lameduck with flags for a hold that counts the crowd's connections.
func (c *crowd) holdWith(lameduck contender, flags ...string) *held {
	lameduck.prefix = slices.Concat(lameduck.prefix[:1], flags, []string{fmt.Sprintf("--count-port=%d", c.addr.Port), "--"})
	out, in, err := os.Pipe()
	check(err)
	defer in.Close()
	h := &held{&box{lameduck, boot(lameduck.with("/bin/sh", "-c", "echo ready; exec sleep 1000"), in, in), out}, bufio.NewReader(out)}
	for !strings.HasPrefix(h.line(), "ready") {
	}
	return h
}

// stop sends TERM and returns the line that lameduck writes.
func (h *held) stop() string {
	check(unix.Kill(h.pid, unix.SIGTERM))
	return h.line()
}

func (h *held) line() string { return must(h.lines.ReadString('\n')) }

// perTenSeconds is the number of samples in ten seconds of a hold by default.
const perTenSeconds = 40

// hold measures the processor time of holds, scaled to ten seconds, and of ss, run once
// for each sample.
func (f figures) hold(lameduck contender, c *crowd, path string, e effort) {
	for range e.holds {
		h := c.hold(lameduck)
		before := h.cpu()
		time.Sleep(e.hold)
		f.add(hold, lameduck, micro(h.cpu()-before)/1000*float64(10*time.Second)/float64(e.hold))
		h.close()
	}
	for range e.samples {
		if path != "" {
			f.add(hold, contender{name: ss}, micro(c.ss(path))/1000*perTenSeconds)
		}
	}
}

// A rush is rushRate short connections a second, in rushParts bursts.
const (
	rushRate  = 10_000
	rushParts = 100
)

// rush counts the short connections that are missing from the report of a hold. A report
// that says "at least" misses none. The line of the report, or the details in JSON, have the
// number.
func (f figures) rush(lameduck contender, length time.Duration) {
	c := newCrowd()
	defer c.close()
	h := c.hold(lameduck)
	defer h.close()
	time.Sleep(settle) // the first samples come after the trigger
	start := time.Now()
	for next := start; time.Since(start) < length; {
		for range rushRate / rushParts {
			c.short()
		}
		next = next.Add(time.Second / rushParts)
		time.Sleep(time.Until(next))
	}
	rate := float64(c.made) / time.Since(start).Seconds()
	time.Sleep(time.Second) // for one more sample; and a TERM earlier would count as a double
	report := h.stop()
	found := newConnections.FindStringSubmatch(report)
	if found == nil {
		check(fmt.Errorf("the report has no new connections: %s", report))
	}
	counted := must(strconv.Atoi(found[2]))
	if found[1] != "" {
		counted = max(counted, c.made)
	}
	f.add(unseen, lameduck, float64(c.made-counted))
	fmt.Printf("%d short connections, %.0f a second: the report has %s\n", c.made, rate, found[0])
}

var newConnections = regexp.MustCompile(`(at least )?(\d+) new connections`)
