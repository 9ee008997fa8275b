package systems

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"sync"
)

// virtual is a running QEMU.
type virtual struct {
	address string // of the guest's server, on the host
	gone    chan struct{}
	console console
}

// console is the guest's output. QEMU's output and the row's verdict are two
// goroutines.
type console struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.String()
}

// start starts QEMU, which ends with ctx at the latest.
func start(ctx context.Context, k *kernel, initramfs string, v *variant) (*virtual, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	words := k.machine.command(k.image, initramfs, k.machine.parameters(v), port)
	q := &virtual{address: fmt.Sprintf("127.0.0.1:%d", port), gone: make(chan struct{})}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = &q.console, &q.console
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w; Debian's packages are qemu-system-x86, qemu-system-arm and qemu-system-misc", words[0], err)
	}
	go func() {
		cmd.Wait()
		close(q.gone)
	}()
	return q, nil
}

// freePort is a port that was free a moment ago: QEMU cannot be given a listener.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
