package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

const nginxConfig = `
daemon off;
pid %[2]s/nginx.pid;
error_log stderr error;
events {}
http {
    access_log off;
    client_body_temp_path %[2]s/body;
    proxy_temp_path %[2]s/proxy;
    fastcgi_temp_path %[2]s/fastcgi;
    uwsgi_temp_path %[2]s/uwsgi;
    scgi_temp_path %[2]s/scgi;
    server {
        listen 127.0.0.1:%[1]d;
        location / { return 200 served; }
    }
}
`

// TestUntilServers stops real servers while a load balancer sends requests for an unknown
// time: no request fails, and the hold ends after the silence of --quiet-for.
func TestUntilServers(t *testing.T) {
	for name, c := range map[string]struct {
		config   string
		port     int
		graceful sig.Signal
		words    func(config string) []string
	}{
		"haproxy": {haproxyConfig, 8090, sig.USR1, func(config string) []string { return []string{"haproxy", "-db", "-f", config} }},
		"Go":      {"", 8092, sig.TERM, func(string) []string { return helperCommand("web", "graceful", "127.0.0.1:8092") }},
		"nginx":   {nginxConfig, 8091, sig.QUIT, func(config string) []string { return []string{"nginx", "-c", config} }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.config != "" {
				needs(t, name)
			}
			t.Parallel()
			dir := t.TempDir()
			config := filepath.Join(dir, "config")
			text := strings.NewReplacer("%[1]d", fmt.Sprint(c.port), "%d", fmt.Sprint(c.port), "%[2]s", dir).Replace(c.config)
			if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			flags := append([]string{"--until=quiet", "--rewrite=TERM:" + c.graceful.String()}, quiet2sFlags...)
			b := boot(t, nil, append(append(flags, "--"), c.words(config)...)...)
			addr := fmt.Sprintf("127.0.0.1:%d", c.port)
			awaitPort(t, addr, true)
			load := startLoad(addr)
			load.await(t, 100)
			b.signal(sig.TERM)
			end := b.err.wait(t, "until quiet").at.Add(3 * time.Second)
			load.await(t, load.served.Load()+500)
			time.Sleep(time.Until(end)) // the load balancer's traffic goes on
			load.end()
			last := time.Now()
			if n := load.failed.Load(); n > 0 {
				t.Errorf("%d of %d requests failed: %v", n, n+load.served.Load(), load.failure.Load())
			}
			report := b.err.wait(t, ", exited 0 at ") // without load the servers end at once
			if !strings.Contains(report.text, "(quiet") {
				t.Errorf("report: %v\nwant the reason quiet", report)
			}
			if took := report.at.Sub(last); took < quiet2s-500*time.Millisecond || took > quiet2s+time.Second {
				t.Errorf("the hold ended %v after the last request, want %v", took, quiet2s)
			}
			b.wantExit(0)
		})
	}
}
