package rollout

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// loopback is a place without demands on the machine: replicas are processes at 127.0.0.1,
// behind a balancer in this program.
type loopback struct{ exe string }

func openLoopback() (*loopback, error) {
	exe, err := os.Executable()
	return &loopback{exe}, err
}

func (l *loopback) balance(context.Context, *server, int) (balancer, error) { return openProxy() }

// start returns when the server, a role of this program, has printed ready and an address.
func (l *loopback) start(_ context.Context, slot int, command func(site) ([]string, error)) (*replica, error) {
	words, err := command(site{exe: l.exe, listen: "127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	stdout, child, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	p := &replica{cmd: exec.Command(words[0], words[1:]...), slot: slot, gone: make(chan struct{}), alone: true}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	p.cmd.Stdout, p.cmd.Stderr = child, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches this program alone, which then stops the replica
	err = p.cmd.Start()
	child.Close()
	if err != nil {
		return nil, err
	}
	go p.wait()
	p.addr, err = readReady(stdout)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("cannot start %q: %w\n%s", words, err, &p.stderr)
	}
	return p, nil
}

func readReady(stdout *os.File) (string, error) {
	stdout.SetReadDeadline(time.Now().Add(patience))
	line, err := bufio.NewReader(stdout).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), ready)
	if err == nil && !ok {
		err = errors.New("the server prints another line")
	}
	if err != nil {
		return "", fmt.Errorf("no %q from the server: %w", ready, err)
	}
	return addr, nil
}

// end ends a replica without a PID namespace, in any state. INT rather than TERM, since
// INT ends a hold of lameduck.
func (p *replica) end() {
	p.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-p.gone:
	case <-time.After(2 * time.Second):
		p.slay()
		<-p.gone
	}
}

// slay sends KILL. Without a PID namespace the children get KILL first: a killed lameduck
// leaves them behind.
func (p *replica) slay() {
	if p.alone {
		p.slayChildren()
	}
	p.cmd.Process.Kill()
}

func (p *replica) slayChildren() {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(children)) {
			if pid, err := strconv.Atoi(field); err == nil {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}
