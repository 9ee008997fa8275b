package rollout

import (
	"bytes"
	"context"
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

// replica is one server under a contender, PID 1 of namespaces of its own.
type replica struct {
	cmd    *exec.Cmd
	addr   string
	slot   int           // its place in the balancer
	gone   chan struct{} // ends when it has exited, at
	at     time.Time
	stderr bytes.Buffer // to be read when it is gone
	alone  bool         // no PID namespace goes with it
	// wires keeps the network namespace when all processes in it have gone, as a
	// pod's does for a while: who still comes is refused, not left waiting.
	wires *os.File
}

// start starts words in new namespaces and returns when it accepts.
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

// launch starts the stage, waits for its network namespace, connects it, and
// tells it so.
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
	if err = r.wire(p, number, stdout); err != nil {
		p.kill()
		return fmt.Errorf("%w\n%s", err, &p.stderr)
	}
	return nil
}

// wire connects the replica's namespace once the stage says that it is there.
func (r *room) wire(p *replica, number int, says *os.File) (err error) {
	if _, err := io.ReadFull(says, make([]byte, len("unshared\n"))); err != nil {
		return fmt.Errorf("no word from the stage: %w", err)
	}
	if p.wires, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", p.cmd.Process.Pid)); err != nil {
		return err
	}
	return r.connect(number, p.cmd.Process.Pid)
}

func (p *replica) wait() {
	p.cmd.Wait()
	p.at = time.Now()
	close(p.gone)
}

// kill ends it whatever state it is in.
func (p *replica) kill() {
	if p.alone {
		p.end()
		return
	}
	p.slay()
	<-p.gone
}

// close takes its network away too.
func (p *replica) close() {
	p.kill()
	p.wires.Close() // nil, and so without effect, where it has none
}

// report is lameduck's last line.
func (p *replica) report() string {
	lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	return lines[len(lines)-1]
}

// await returns when somebody accepts at addr.
func await(ctx context.Context, addr string, gone <-chan struct{}) error {
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		var conn net.Conn
		if conn, err = net.DialTimeout("tcp", addr, 100*time.Millisecond); err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-gone:
			return fmt.Errorf("it has exited")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}
