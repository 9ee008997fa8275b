package rollout

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const patience = 20 * time.Second // for a handshake

// replica is a server under a contender: in a rollout PID 1 of namespaces of its own, and in
// the demo a process on the loopback interface.
type replica struct {
	cmd    *exec.Cmd
	addr   string
	slot   int           // in the balancer
	stdin  io.Closer     // a server on the loopback interface ends with its standard input
	gone   chan struct{} // closed when the process has exited
	at     time.Time     // of the exit
	stderr bytes.Buffer  // to be read after the exit
	// network keeps the network namespace after the last process, as the network of a pod
	// lasts for a while: late connections are refused and not left waiting.
	network *os.File
}

// inNamespaces becomes the server's command in namespaces. unshare(1) makes the network
// namespace: CLONE_NEWNET in clone(2) takes long while many namespaces are made and removed,
// and Go's runtime, and with it the load, would stand still meanwhile. The end of standard
// input says that the namespace has a network.
var inNamespaces = []string{"unshare", "--net", "--mount-proc", "sh", "-ec", `
	echo unshared
	read -r network || true
	ip link set lo up
	ip address add "$1/24" dev eth0
	ip link set eth0 up
	shift
	exec "$@"`, "stage"}

// connect connects a replica's network namespace with the balancers'.
const connect = `
	ip link add "$1" type veth peer name eth0 netns "$2"
	ip address add "$3/24" dev "$1"
	ip link set "$1" up`

// start starts a replica of the trial and returns when the server accepts.
func (a *arena) start(ctx context.Context) (*replica, error) {
	number := int(a.o.used.Add(1))
	dir := filepath.Join(a.o.dir, fmt.Sprintf("replica%d", number))
	ip := fmt.Sprintf("10.%d.%d.", 1+number/250, 1+number%250)
	listen := "127.0.0.1:0"
	if !a.o.onLoopback() {
		listen = fmt.Sprintf(":%d", port)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	words, err := a.server.command(a.o.exe, dir, listen)
	if err != nil {
		return nil, err
	}
	words = a.contender.command(a.o, a.server, words)
	r := &replica{slot: len(a.all) + 1, gone: make(chan struct{})}
	attributes := &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches the laboratory alone
	if !a.o.onLoopback() {
		attributes.Cloneflags = syscall.CLONE_NEWPID
		words = append(append(inNamespaces[:len(inNamespaces):len(inNamespaces)], ip+"2"), words...)
	}
	line, err := r.launch(words, attributes)
	if r.stdin != nil {
		a.all = append(a.all, r)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start %q: %w\n%s", words, err, &r.stderr)
	}
	if a.o.onLoopback() {
		r.addr = line
		return r, nil
	}
	if err := r.wire(fmt.Sprintf("r%d", number), ip+"1"); err != nil {
		return nil, err
	}
	r.addr = fmt.Sprintf("%s2:%d", ip, port)
	if err := await(ctx, r.addr, r.gone); err != nil {
		r.close()
		return nil, fmt.Errorf("%q does not accept: %w\n%s", words, err, &r.stderr)
	}
	return r, nil
}

// launch returns the first line of the process.
func (r *replica) launch(words []string, attributes *syscall.SysProcAttr) (line string, err error) {
	r.cmd = exec.Command(words[0], words[1:]...)
	r.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	r.cmd.Stderr = &r.stderr
	r.cmd.SysProcAttr = attributes
	stdin, err := r.cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	stdout, child, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer stdout.Close()
	r.cmd.Stdout = child
	err = r.cmd.Start()
	child.Close()
	if err != nil {
		return "", err
	}
	r.stdin = stdin
	go func() {
		r.cmd.Wait()
		r.at = time.Now()
		close(r.gone)
	}()
	line, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		r.close()
	}
	return strings.TrimSpace(line), err
}

// wire connects the replica's network, and has the replica go on.
func (r *replica) wire(name, host string) (err error) {
	defer r.stdin.Close()
	pid := r.cmd.Process.Pid
	r.network, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	text, err := exec.Command("sh", "-ec", connect, "connect", name, fmt.Sprint(pid), host).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot connect a network: %w: %s", err, text)
	}
	return nil
}

// close ends the replica in any state, and its network. A server that remains on the loopback
// interface ends with its standard input.
func (r *replica) close() {
	r.stdin.Close()
	r.cmd.Process.Kill()
	<-r.gone
	r.network.Close() // without effect if nil
}

// report has the figures of lameduck's lines; see docs/report.md.
type report struct {
	Message    string       `json:"message"`
	Trigger    string       `json:"trigger"`
	HeldMS     int64        `json:"held_ms"`
	Ended      string       `json:"ended"`
	Lull       bool         `json:"lull"`
	FloorMS    int64        `json:"floor_ms"`
	CeilingMS  int64        `json:"ceiling_ms"`
	Accepted   int          `json:"accepted"`
	LastNewMS  int64        `json:"last_new_ms"`
	LastByteMS int64        `json:"last_byte_ms"`
	InFlight   int          `json:"in_flight"`
	Sent       []sentSignal `json:"sent"`
	ExitCode   *int         `json:"exit_code"`
	UsedMS     int64        `json:"grace_used_ms"`
}

type sentSignal struct {
	Signal string `json:"signal"`
	AtMS   int64  `json:"at_ms"`
}

// reports returns lameduck's lines in a replica's standard error.
func reports(stderr string) (all []report) {
	for line := range strings.Lines(stderr) {
		var r report
		if json.Unmarshal([]byte(line), &r) == nil && r.Message != "" {
			all = append(all, r)
		}
	}
	return all
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
