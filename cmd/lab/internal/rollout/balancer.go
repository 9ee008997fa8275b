package rollout

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// balancer balances over the replicas of one trial. No request is retried, so that no
// failure is hidden.
type balancer interface {
	// add and remove return when the change has taken effect.
	add(*replica) error
	remove(*replica) error
	addr() string
	close()
}

func (r *room) balance(ctx context.Context, s *server, slots int) (balancer, error) {
	n := r.ports.Add(1)
	dir := filepath.Join(r.dir, fmt.Sprintf("balancer%d", n))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	listen := fmt.Sprintf("127.0.0.1:%d", n)
	mode := byRequest
	switch {
	case s.balancer == "nginx":
		return openNginx(ctx, dir, listen)
	case s.byConn:
		mode = byConn
	case s.keepAlive:
		mode = pooled
	}
	return openHAProxy(ctx, dir, listen, slots, mode)
}

// daemon is the process of a balancer.
type daemon struct {
	cmd    *exec.Cmd
	listen string
	stderr bytes.Buffer
	gone   chan struct{}
}

// open starts the daemon and returns when the daemon accepts.
func (d *daemon) open(ctx context.Context, words ...string) error {
	d.cmd = exec.Command(words[0], words[1:]...)
	d.cmd.Stdout, d.cmd.Stderr = &d.stderr, &d.stderr
	d.gone = make(chan struct{})
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal to the group reaches the workers too
	if err := d.cmd.Start(); err != nil {
		return err
	}
	go func() {
		d.cmd.Wait()
		close(d.gone)
	}()
	if err := await(ctx, d.listen, d.gone); err != nil {
		d.close()
		return fmt.Errorf("%q does not accept: %w\n%s", words, err, &d.stderr)
	}
	return nil
}

func (d *daemon) addr() string { return d.listen }

func (d *daemon) close() {
	syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
	<-d.gone
}
