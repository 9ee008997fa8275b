package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// traffic has lameduck look at connections beside ss(8), which tells the same of
// them: `ss -Htni` with a filter that the kernel applies.
func (f figures) traffic(lameduck contender, looker string, e effort) {
	ownNetwork()
	c := newCrowd()
	defer c.close()
	path := installed([]string{ss})
	if path == "" {
		fmt.Println("ss is not installed, and left out")
	}
	l := c.look(looker)
	defer l.close()
	for _, size := range []struct {
		figure      figure
		connections int
	}{{look1, 1000}, {look10, 10_000}, {look50, 50_000}} {
		if size.connections > e.crowd {
			break
		}
		c.grow(size.connections)
		f.look(size.figure, l, path, e.looks)
		if size.figure == look10 {
			f.hold(lameduck, c, path, e)
		}
	}
	f.rush(lameduck, e.rush)
}

// look takes looks at the crowd.
func (f figures) look(what figure, l *looker, path string, looks int) {
	turns(looks, []string{ss, ours}, func(who string, counts bool) {
		var took time.Duration
		switch {
		case who == ours:
			took = l.look()
		case path != "":
			before := time.Now()
			l.ss(path)
			took = time.Since(before)
		}
		if counts && took > 0 {
			f.add(what, contender{name: who}, micro(took))
		}
	})
}

// looker is a process that looks as a hold does; see shim/internal/observe/looker_test.go.
type looker struct {
	*crowd
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func (c *crowd) look(path string) *looker {
	l := &looker{crowd: c, cmd: exec.Command(path, "helper", "look", strconv.Itoa(c.addr.Port))}
	l.cmd.Env, l.cmd.Stderr = env, null
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	l.in = must(l.cmd.StdinPipe())
	l.out = bufio.NewReader(must(l.cmd.StdoutPipe()))
	check(l.cmd.Start())
	return l
}

// look is how long one look takes. It has to see all connections, and the listener.
func (l *looker) look() time.Duration {
	var sockets, nanoseconds int
	fmt.Fprintln(l.in)
	must(fmt.Fscanln(l.out, &sockets, &nanoseconds))
	if sockets != l.kept+1 {
		check(fmt.Errorf("a look saw %d of %d sockets", sockets, l.kept+1))
	}
	return time.Duration(nanoseconds)
}

// ss runs it, and is the processor time it takes.
func (c *crowd) ss(path string) time.Duration {
	status, usage := wait(must(syscall.ForkExec(path, []string{ss, "-Htni", fmt.Sprintf("sport = :%d", c.addr.Port)},
		&syscall.ProcAttr{Env: env, Files: []uintptr{null.Fd(), null.Fd(), 2}})))
	if status != 0 {
		check(fmt.Errorf("ss ends with status %#x", status))
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func (l *looker) close() {
	l.cmd.Process.Kill()
	l.cmd.Wait()
}
