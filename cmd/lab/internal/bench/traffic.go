package bench

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// traffic has lameduck sample connections beside ss(8), and ss prints the same facts:
// ss -Htni with a filter for the kernel. The network namespace is new, and
// all of 10.0.0.0/8 is local: the addresses are not taken for a container's
// connections to itself, and have ports enough for any number of clients.
func (f figures) traffic(lameduck contender, helper string, e effort) {
	check(unix.Unshare(unix.CLONE_NEWNET))
	check(netns.LoopbackUp([4]byte{10, 0, 0, 1}))
	c := newCrowd()
	defer c.close()
	path := installed([]string{ss})
	if path == "" {
		fmt.Println("ss is not installed, and left out")
	}
	s := c.startSampler(helper)
	defer s.close()
	for _, size := range []struct {
		figure      figure
		connections int
	}{{sample1, 1000}, {sample10, 10_000}, {sample50, 50_000}} {
		if size.connections > e.crowd {
			break
		}
		c.grow(size.connections)
		f.sample(size.figure, s, path, e.samples)
		if size.figure == sample10 {
			f.hold(lameduck, c, path, e)
		}
	}
	f.rush(lameduck, e.rush)
}

// sample samples the crowd, by turns with the ss at path.
func (f figures) sample(what figure, s *sampler, path string, samples int) {
	turns(samples, []string{ss, ours}, func(name string, counts bool) {
		var took time.Duration
		switch {
		case name == ours:
			took = s.sample()
		case path != "":
			before := time.Now()
			s.ss(path)
			took = time.Since(before)
		}
		if counts && took > 0 {
			f.add(what, contender{name: name}, micro(took))
		}
	})
}

// sampler is a process that samples as a hold does: see shim/internal/observe/looker_test.go.
type sampler struct {
	*crowd
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func (c *crowd) startSampler(path string) *sampler {
	s := &sampler{crowd: c, cmd: exec.Command(path, "helper", "look", strconv.Itoa(c.addr.Port))}
	s.cmd.Env, s.cmd.Stderr = env, null
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.in = must(s.cmd.StdinPipe())
	s.out = bufio.NewReader(must(s.cmd.StdoutPipe()))
	check(s.cmd.Start())
	return s
}

// sample returns the time of a sample with all connections and the
// listener.
func (s *sampler) sample() time.Duration {
	var sockets, nanoseconds int
	fmt.Fprintln(s.in)
	must(fmt.Fscanln(s.out, &sockets, &nanoseconds))
	if sockets != s.kept+1 {
		check(fmt.Errorf("a sample has %d of %d sockets", sockets, s.kept+1))
	}
	return time.Duration(nanoseconds)
}

// ss runs ss and returns the processor time.
func (c *crowd) ss(path string) time.Duration {
	status, usage := wait(must(syscall.ForkExec(path, []string{ss, "-Htni", fmt.Sprintf("sport = :%d", c.addr.Port)},
		&syscall.ProcAttr{Env: env, Files: []uintptr{null.Fd(), null.Fd(), 2}})))
	if status != 0 {
		check(fmt.Errorf("ss ends with status %#x", status))
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func (s *sampler) close() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}
