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
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
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

// balance opens the balancer of a trial.
func (t *trial) balance(ctx context.Context, o *options) (balancer, error) {
	if t.server.balancer == "built in" {
		return openBuiltIn()
	}
	if t.server.balancer == "kube-proxy" {
		return openKubeProxy(t.server, t.seed), nil
	}
	n := 10000 + o.used.Add(1) // below the ports that the kernel chooses
	dir := filepath.Join(o.dir, fmt.Sprintf("balancer%d", n))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	d := daemon{dir: dir, listen: fmt.Sprintf("127.0.0.1:%d", n)}
	if t.server.balancer == "nginx" {
		return openNginx(ctx, d)
	}
	return openHAProxy(ctx, d, 2*len(t.lags)+1, haproxyModes[t.server.balancer])
}

// daemon is the process of a balancer.
type daemon struct {
	dir    string
	listen string
	cmd    *exec.Cmd
	output bytes.Buffer
	gone   chan struct{}
}

// open starts the daemon and returns when it accepts.
func (d *daemon) open(ctx context.Context, words ...string) error {
	d.cmd = exec.Command(words[0], words[1:]...)
	d.cmd.Stdout, d.cmd.Stderr = &d.output, &d.output
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
		return fmt.Errorf("%q does not accept: %w\n%s", words, err, &d.output)
	}
	return nil
}

func (d *daemon) addr() string { return d.listen }

func (d *daemon) close() {
	syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
	<-d.gone
}

// builtIn sends requests to the replicas by turns, with a new connection each. A replica
// that cannot be reached, or that ends before the first byte of the answer, gives a 502.
type builtIn struct {
	listener net.Listener

	mu       sync.Mutex // requests run beside each other
	replicas []string
	turn     int
	conns    map[string][]span // that have ended, by replica
}

// span is the time of a connection.
type span struct{ from, to time.Time }

func openBuiltIn() (*builtIn, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot open the balancer: %w", err)
	}
	b := &builtIn{listener: listener, conns: map[string][]span{}}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go b.relay(client)
		}
	}()
	return b, nil
}

const badGateway = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

// relay reads a request, which comes in one piece, and copies the answer.
func (b *builtIn) relay(client net.Conn) {
	defer client.Close()
	request := make([]byte, 4096)
	n, err := client.Read(request)
	if err != nil || b.forward(client, request[:n]) == 0 {
		io.WriteString(client, badGateway)
	}
}

// forward returns the size of the answer.
func (b *builtIn) forward(client net.Conn, request []byte) (size int64) {
	b.mu.Lock()
	b.turn++
	addr := b.replicas[b.turn%len(b.replicas)]
	b.mu.Unlock()
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return 0
	}
	defer conn.Close()
	s := span{from: time.Now()}
	if _, err = conn.Write(request); err == nil {
		size, _ = io.Copy(client, conn)
	}
	s.to = time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[addr] = append(b.conns[addr], s)
	return size
}

func (b *builtIn) add(r *replica) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replicas = append(b.replicas, r.addr)
	return nil
}

func (b *builtIn) remove(r *replica) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replicas = without(b.replicas, r)
	return nil
}

func without(all []string, r *replica) []string {
	return slices.DeleteFunc(all, func(addr string) bool { return addr == r.addr })
}

func (b *builtIn) addr() string { return b.listener.Addr().String() }

func (b *builtIn) close() { b.listener.Close() }

// haproxyConfig has a slot for each replica of a rollout.
const haproxyConfig = `
global
    stats socket unix@%[1]s mode 600 level admin
    stats timeout 1h
    nbthread 1
defaults
    %[4]s
    retries 0
    no option redispatch
    timeout client 1h
    timeout connect 2s
    timeout server 30s
    timeout tunnel 1h
frontend web
    bind %[2]s
    default_backend pods
backend pods
    balance roundrobin
    server-template s 1-%[3]d 127.0.0.1:1 disabled
`

// haproxyModes are the modes of balancing: requests, each with a connection of its own on
// both sides, or with kept connections; or connections, as kube-proxy does.
var haproxyModes = map[string]string{
	"haproxy":       "mode http\n    option httpclose\n    http-reuse never",
	"haproxy pools": "mode http\n    option http-keep-alive\n    http-reuse always",
	"haproxy tcp":   "mode tcp",
}

// haproxy learns of each change through the runtime API.
type haproxy struct {
	daemon
	socket string
}

func openHAProxy(ctx context.Context, d daemon, slots int, mode string) (balancer, error) {
	h := &haproxy{d, filepath.Join(d.dir, "s")}
	config := filepath.Join(h.dir, "haproxy.cfg")
	text := fmt.Appendf(nil, haproxyConfig, h.socket, h.listen, slots, mode)
	if err := os.WriteFile(config, text, 0o644); err != nil {
		return nil, err
	}
	return h, h.open(ctx, "haproxy", "-db", "-f", config)
}

func (h *haproxy) add(r *replica) error {
	host, port, _ := net.SplitHostPort(r.addr)
	if err := h.say(fmt.Sprintf("set server pods/s%d addr %s port %s", r.slot, host, port), "changed"); err != nil {
		return err
	}
	return h.say(fmt.Sprintf("set server pods/s%d state ready", r.slot), "")
}

func (h *haproxy) remove(r *replica) error {
	return h.say(fmt.Sprintf("set server pods/s%d state maint", r.slot), "")
}

// say sends one command. The answer must contain want, or be empty for an empty want.
func (h *haproxy) say(command, want string) error {
	conn, err := net.Dial("unix", h.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintln(conn, command)
	answer, err := io.ReadAll(conn)
	text := strings.TrimSpace(string(answer))
	if err == nil && (!strings.Contains(text, want) || want == "" && text != "") {
		err = fmt.Errorf("the answer is %q", text)
	}
	if err != nil {
		return fmt.Errorf("cannot tell haproxy %q: %w", command, err)
	}
	return nil
}
