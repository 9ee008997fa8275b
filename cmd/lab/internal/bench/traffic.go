package bench

import (
	"bufio"
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// samples is how often each crowd is sampled.
const samples = 60

// traffic has lameduck sample connections beside ss(8), and ss prints the same facts:
// ss -Htni with a filter for the kernel. All of 10.0.0.0/8 is local: the addresses are not taken
// for a container's connections to itself, and have ports enough for any number of clients.
func (b *bench) traffic(lameduck contender) {
	must.Do(exec.Command("ip", "address", "add", "10.0.0.1/8", "dev", "lo").Run())
	c := newCrowd()
	path := must.Get(exec.LookPath(ss))
	sample := c.startSampler(b.build("sampler", "./shim/internal/observe", "", "test", "-C=../..", "-c"))
	measure := func(what figure, connections int) {
		c.grow(connections)
		turns(samples/b.less, []string{ss, ours}, func(name string, counts bool) {
			before := time.Now()
			took := time.Duration(0)
			if name == ours {
				took = sample()
			} else {
				c.ss(path)
				took = time.Since(before)
			}
			if counts {
				b.add(what, name, micro(took))
			}
		})
	}
	measure(sample1, 1000)
	measure(sample10, 10_000)
	b.hold(lameduck, c, path)
	if b.less == 1 {
		measure(sample50, 50_000)
	}
	b.rush(lameduck)
}

// ss runs ss and returns the processor time.
func (c *crowd) ss(path string) time.Duration {
	status, usage := wait(must.Get(syscall.ForkExec(path, []string{ss, "-Htni", fmt.Sprintf("sport = :%d", c.addr.Port)},
		&syscall.ProcAttr{Env: env, Files: []uintptr{null.Fd(), null.Fd(), 2}})))
	must.Be(status == 0, "ss ends with status %#x", status)
	return cpuTime(&usage)
}

// startSampler starts a process that samples as a hold does: see shim/internal/observe/main_test.go.
// sample returns the time of a sample with all connections and the listener.
func (c *crowd) startSampler(path string) (sample func() time.Duration) {
	cmd := exec.Command(path, "helper", "look", strconv.Itoa(c.addr.Port))
	cmd.Env = env
	in, out := must.Get(cmd.StdinPipe()), bufio.NewReader(must.Get(cmd.StdoutPipe()))
	must.Do(cmd.Start())
	return func() time.Duration {
		var sockets, nanoseconds int
		fmt.Fprintln(in)
		must.Get(fmt.Fscanln(out, &sockets, &nanoseconds))
		must.Be(sockets == c.kept+1, "a sample has %d of %d sockets", sockets, c.kept+1)
		return time.Duration(nanoseconds)
	}
}
