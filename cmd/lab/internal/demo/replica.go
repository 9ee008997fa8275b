package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// replica is a server under a contender.
type replica struct {
	cmd    *exec.Cmd
	addr   string
	stdin  io.Closer     // the server ends with its standard input
	gone   chan struct{} // closed when the process has exited
	at     time.Time     // of the exit
	stderr bytes.Buffer  // to be read after the exit

	mu    sync.Mutex // requests run beside each other
	conns []span
}

// span is the time of a connection.
type span struct{ from, to time.Time }

// startReplica returns when the server has printed its address.
func startReplica(words []string) (*replica, error) {
	r := &replica{cmd: exec.Command(words[0], words[1:]...), gone: make(chan struct{})}
	r.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	r.cmd.Stderr = &r.stderr
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches the demo alone
	stdin, err := r.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	r.stdin = stdin
	stdout, child, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	r.cmd.Stdout = child
	err = r.cmd.Start()
	child.Close()
	if err != nil {
		return nil, err
	}
	go r.wait()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		r.close()
		return nil, fmt.Errorf("cannot start %q: no address from the server: %w\n%s", words, err, &r.stderr)
	}
	r.addr = strings.TrimSpace(line)
	return r, nil
}

func (r *replica) wait() {
	r.cmd.Wait()
	r.at = time.Now()
	close(r.gone)
}

// connected records a connection. The caller calls the returned function at its end.
func (r *replica) connected() (ended func()) {
	from := time.Now()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.conns = append(r.conns, span{from, time.Now()})
	}
}

// close ends the replica in any state. KILL is for a server that does not end with its
// standard input.
func (r *replica) close() {
	r.stdin.Close()
	select {
	case <-r.gone:
	case <-time.After(5 * time.Second):
		r.cmd.Process.Kill()
		<-r.gone
	}
}
