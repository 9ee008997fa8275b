package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// nginxConfig has max_fails=0, or nginx would leave out a server for 10 s after a failure.
const nginxConfig = `
daemon off;
worker_processes 1;
pid %[1]s/pid;
error_log stderr emerg;
events {}
http {
    access_log off;
    client_body_temp_path %[1]s/body;
    proxy_temp_path %[1]s/proxy;
    fastcgi_temp_path %[1]s/fastcgi;
    uwsgi_temp_path %[1]s/uwsgi;
    scgi_temp_path %[1]s/scgi;
    upstream pods { %[3]s }
    server {
        listen %[2]s;
        location = /generation { return %[4]d; }
        location / {
            proxy_pass http://pods;
            proxy_next_upstream off;
            proxy_connect_timeout 2s;
        }
    }
}
`

// nginx learns of each change by a new file and HUP. A change has taken effect when the new
// workers answer, with a status of their generation.
type nginx struct {
	daemon
	pods       []string
	generation int
}

func openNginx(ctx context.Context, d daemon) (balancer, error) {
	n := &nginx{daemon: d, generation: 600}
	if err := n.save(); err != nil {
		return nil, err
	}
	return n, n.open(ctx, "nginx", "-c", n.config())
}

func (n *nginx) config() string { return filepath.Join(n.dir, "nginx.conf") }

func (n *nginx) add(r *replica) error {
	n.pods = append(n.pods, r.addr)
	return n.reload()
}

func (n *nginx) remove(r *replica) error {
	n.pods = without(n.pods, r)
	return n.reload()
}

func (n *nginx) save() error {
	servers := "server 127.0.0.1:1;"
	if len(n.pods) > 0 {
		servers = "server " + strings.Join(n.pods, " max_fails=0; server ") + " max_fails=0;"
	}
	return os.WriteFile(n.config(), fmt.Appendf(nil, nginxConfig, n.dir, n.listen, servers, n.generation), 0o644)
}

func (n *nginx) reload() error {
	n.generation++
	if err := n.save(); err != nil {
		return err
	}
	if err := n.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return err
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		conn, err := load.Dial(n.listen, end)
		if err != nil {
			continue
		}
		answer, err := conn.HTTP("/generation", "", false)
		conn.Close()
		if err == nil && answer.Status == n.generation {
			return nil
		}
	}
	return errors.New("nginx does not reload")
}
