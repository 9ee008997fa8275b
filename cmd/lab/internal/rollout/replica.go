package rollout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const patience = 20 * time.Second // for a handshake

// replica is a server under a contender, PID 1 of namespaces of its own.
type replica struct {
	cmd    *exec.Cmd
	addr   string
	slot   int           // in the balancer
	gone   chan struct{} // closed when the process has exited
	at     time.Time     // of the exit
	stderr bytes.Buffer  // to be read after the exit
	// wires keeps the network namespace after the last process, as the network of a pod
	// lasts for a while: late connections are refused and not left waiting.
	wires *os.File
}

// start starts a replica in new namespaces and returns when the server accepts.
func (r *room) start(ctx context.Context, slot int, command func(site) ([]string, error)) (*replica, error) {
	number, ip := r.address()
	dir := filepath.Join(r.dir, strconv.Itoa(number))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	words, err := command(site{exe: r.exe, dir: dir, listen: fmt.Sprintf(":%d", port)})
	if err != nil {
		return nil, err
	}
	p := &replica{addr: fmt.Sprintf("%v:%d", ip, port), slot: slot, gone: make(chan struct{})}
	if err := r.launch(p, number, ip, words); err != nil {
		return nil, fmt.Errorf("cannot start %q: %w", words, err)
	}
	if err := await(ctx, p.addr, p.gone); err != nil {
		p.kill()
		return nil, fmt.Errorf("%q does not accept: %w\n%s", words, err, &p.stderr)
	}
	return p, nil
}

// launch starts the stage, waits for the network namespace, and connects the namespace to
// the room. The end of the stage's input is the sign to go on.
func (r *room) launch(p *replica, number int, ip net.IP, words []string) error {
	p.cmd = exec.Command(r.exe, append([]string{"rollout", "stage", ip.String()}, words...)...)
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	stdout, child, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdout.Close()
	p.cmd.Stdout = child
	err = p.cmd.Start()
	child.Close()
	if err != nil {
		return err
	}
	go p.wait()
	if err := r.wire(p, number, stdout); err != nil {
		p.kill()
		return fmt.Errorf("%w\n%s", err, &p.stderr)
	}
	return nil
}

// wire connects the replica's namespace when the stage has printed unshared.
func (r *room) wire(p *replica, number int, stdout *os.File) (err error) {
	if _, err := io.ReadFull(stdout, make([]byte, len("unshared\n"))); err != nil {
		return fmt.Errorf("no word from the stage: %w", err)
	}
	p.wires, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", p.cmd.Process.Pid))
	if err != nil {
		return err
	}
	return r.connect(number, p.cmd.Process.Pid)
}

func (p *replica) wait() {
	p.cmd.Wait()
	p.at = time.Now()
	close(p.gone)
}

// kill ends the replica in any state.
func (p *replica) kill() {
	p.cmd.Process.Kill()
	<-p.gone
}

// close removes the replica's network too.
func (p *replica) close() {
	p.kill()
	p.wires.Close() // without effect if nil
}

// report returns lameduck's last line.
func (p *replica) report() string {
	lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	return lines[len(lines)-1]
}

// await returns when a server accepts at addr.
func await(ctx context.Context, addr string, gone <-chan struct{}) error {
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		var conn net.Conn
		conn, err = net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-gone:
			return errors.New("the process has exited")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}
