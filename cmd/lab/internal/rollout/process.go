package rollout

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// process is a program in a process group of its own: Ctrl-C reaches the laboratory alone.
type process struct {
	*exec.Cmd
	addr string        // where it accepts
	said bytes.Buffer  // standard error, to be read after the exit
	gone chan struct{} // closed when the process has exited
	at   time.Time     // of the exit
}

func newProcess(ctx context.Context, addr string, words ...string) *process {
	p := &process{Cmd: exec.CommandContext(ctx, words[0], words[1:]...), addr: addr, gone: make(chan struct{})}
	p.Env = []string{"PATH=" + os.Getenv("PATH")}
	p.Stderr = &p.said
	p.WaitDelay = time.Second // for a server that outlives its parent, with the same standard error
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return p
}

func (p *process) start() {
	must.Do(p.Start())
	go func() {
		p.Wait()
		p.at = time.Now()
		close(p.gone)
	}()
}

func (p *process) hasGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

const patience = 20 * time.Second // for a handshake

// await returns when the process accepts.
func (p *process) await(ctx context.Context) {
	for end := time.Now().Add(patience); ; pause(ctx, 5*time.Millisecond) {
		conn, err := net.DialTimeout("tcp", p.addr, 100*time.Millisecond)
		if err == nil {
			conn.Close()
			return
		}
		if p.hasGone() || time.Now().After(end) {
			p.fail(err)
		}
	}
}

// fail ends the process, and tells what it said.
func (p *process) fail(err error) {
	p.close()
	must.Do(fmt.Errorf("%q: %w: %s", p.Args, err, &p.said))
}

// close ends the process group in any state.
func (p *process) close() {
	syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
	<-p.gone
}
