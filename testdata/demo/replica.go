package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	readyTimeout = 5 * time.Second
	stopTimeout  = 2 * time.Second
)

// replica is one running server, bare or with lameduck before it.
type replica struct {
	cmd    *exec.Cmd
	addr   string
	gone   chan struct{} // closed when it has ended
	stderr bytes.Buffer  // to be read when it is gone
}

// start returns when the command has said that it is ready.
func start(command ...string) (*replica, error) {
	stdout, child, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	defer child.Close()

	r := &replica{cmd: exec.Command(command[0], command[1:]...), gone: make(chan struct{})}
	r.cmd.Env = slices.DeleteFunc(os.Environ(), disturbs)
	r.cmd.Stdout, r.cmd.Stderr, r.cmd.WaitDelay = child, &r.stderr, stopTimeout
	// A group of its own: Ctrl-C is for us, and we then stop it.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go r.wait()
	child.Close()

	if r.addr, err = readReady(stdout); err != nil {
		r.stop()
		return nil, fmt.Errorf("cannot start %q: %w\n%s", command, err, &r.stderr)
	}
	return r, nil
}

func readReady(stdout *os.File) (string, error) {
	stdout.SetReadDeadline(time.Now().Add(readyTimeout))
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("no ready from it: %w", err)
	}
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if !ok {
		return "", fmt.Errorf("it said %q rather than ready", line)
	}
	return addr, nil
}

// disturbs picks out the variables that would change what lameduck does here:
// its own, and those that it assumes another grace period by.
func disturbs(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "LAMEDUCK_") || slices.Contains([]string{
		"KUBERNETES_SERVICE_HOST", "ECS_CONTAINER_METADATA_URI_V4", "NOMAD_ALLOC_ID",
	}, name)
}

func (r *replica) wait() {
	r.cmd.Wait()
	close(r.gone)
}

func (r *replica) signal(s syscall.Signal) { r.cmd.Process.Signal(s) }

// stop ends the replica whatever state it is in. INT rather than TERM, since
// lameduck holds at TERM and ends a hold at INT.
func (r *replica) stop() {
	r.signal(syscall.SIGINT)
	select {
	case <-r.gone:
	case <-time.After(stopTimeout):
		r.kill()
		<-r.gone
	}
}

// kill takes the children first: KILL gives lameduck no time to do so.
func (r *replica) kill() {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.cmd.Process.Pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(children)) {
			if pid, err := strconv.Atoi(field); err == nil {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	r.signal(syscall.SIGKILL)
}
