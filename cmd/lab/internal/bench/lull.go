package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// lullCrowds are the numbers of open connections at the stops of lulls.
var lullCrowds = []int{24, 1000}

// lullFlags hold for 100 ms, and then until a lull, for half a second at most.
var lullFlags = []string{"--delay=0.1", "--grace-period=30", "--log-level=debug"}

// lulls plays stops with a request in flight, one stop after the other, and prints how
// soon the signal follows the sample that shows the lull, by lameduck's account, and the
// answer to the request, as seen from outside.
func lulls(lameduck contender, stops int, out io.Writer) {
	check(unix.Unshare(unix.CLONE_NEWNET))
	check(netns.LoopbackUp([4]byte{10, 0, 0, 1}))
	c := newCrowd()
	defer c.close()
	fmt.Fprintln(out, "connections  stops  at a lull  sample to signal, µs: median  95 %  answer to signal, µs: median  95 %")
	for _, size := range lullCrowds {
		c.grow(size - 1)
		var ages, delays []float64
		for range stops {
			age, delay := c.lull(lameduck)
			if age > 0 {
				ages = append(ages, micro(age))
			}
			delays = append(delays, micro(delay))
		}
		fmt.Fprintf(out, "%11d  %5d  %9d  %29.0f  %4.0f  %29.0f  %4.0f\n", size, stops, len(ages),
			median(ages), percentile95(ages), median(delays), percentile95(delays))
	}
}

// percentile95 returns NaN for no samples.
func percentile95(samples []float64) float64 {
	if len(samples) == 0 {
		return median(samples)
	}
	return slices.Sorted(slices.Values(samples))[len(samples)*95/100]
}

var lullAge = regexp.MustCompile(`lull has an age of (\S+)`)

// lull plays one stop. age is that of the sample when the signal was sent, 0 if no sample
// showed a lull, and delay the time from the answer to the command's end.
func (c *crowd) lull(lameduck contender) (age, delay time.Duration) {
	client, server := c.connect()
	defer unix.Close(client)
	defer unix.Close(server)
	h := c.holdWith(lameduck, lullFlags...)
	defer h.out.Close()
	time.Sleep(20 * time.Millisecond) // several ticks of the kernel's clock after the first answer
	say(client, server, 100)
	command := h.command()
	defer unix.Close(command)
	h.stop()
	time.Sleep(250 * time.Millisecond) // the search has begun
	answered := time.Now()
	say(server, client, 200)
	awaitEnd(command)
	delay = time.Since(answered)
	wait(h.pid)
	text := must(io.ReadAll(h.lines))
	if found := lullAge.FindSubmatch(text); found != nil {
		age = must(time.ParseDuration(string(found[1])))
	}
	return age, delay
}

// command returns a file descriptor for the child of the first process; see pidfd_open(2).
func (b *box) command() (fd int) {
	children := must(os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", b.pid)))
	pid := must(strconv.Atoi(string(bytes.TrimSpace(children))))
	return must(unix.PidfdOpen(pid, 0))
}

// awaitEnd waits until a process has ended.
func awaitEnd(fd int) {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err != unix.EINTR {
			check(err)
			return
		}
	}
}
