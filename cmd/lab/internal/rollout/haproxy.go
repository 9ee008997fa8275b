package rollout

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

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

// The modes of balancing: requests, each with a connection of its own on both sides, or
// with kept connections; or connections, as kube-proxy does.
const (
	byRequest = "mode http\n    option httpclose\n    http-reuse never"
	pooled    = "mode http\n    option http-keep-alive\n    http-reuse always"
	byConn    = "mode tcp"
)

// haproxy learns of each change through the runtime API.
type haproxy struct {
	daemon
	socket string
}

func openHAProxy(ctx context.Context, dir, listen string, slots int, mode string) (balancer, error) {
	h := &haproxy{socket: filepath.Join(dir, "s")}
	h.listen = listen
	config := filepath.Join(dir, "haproxy.cfg")
	text := fmt.Appendf(nil, haproxyConfig, h.socket, listen, slots, mode)
	if err := os.WriteFile(config, text, 0o644); err != nil {
		return nil, err
	}
	if err := h.open(ctx, "haproxy", "-db", "-f", config); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *haproxy) add(p *replica) error {
	host, port, _ := net.SplitHostPort(p.addr)
	if err := h.say(fmt.Sprintf("set server pods/s%d addr %s port %s", p.slot, host, port), "changed"); err != nil {
		return err
	}
	return h.say(fmt.Sprintf("set server pods/s%d state ready", p.slot), "")
}

func (h *haproxy) remove(p *replica) error {
	return h.say(fmt.Sprintf("set server pods/s%d state maint", p.slot), "")
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
	if text := strings.TrimSpace(string(answer)); err == nil && (!strings.Contains(text, want) || want == "" && text != "") {
		err = fmt.Errorf("the answer is %q", text)
	}
	if err != nil {
		return fmt.Errorf("cannot tell haproxy %q: %w", command, err)
	}
	return nil
}
