package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// start serves by a configuration.
func start(t *testing.T, config string) *server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	handler, err := newHandler(path)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{handler: handler, listener: listener}
	go s.serve()
	t.Cleanup(func() { s.http.Close() })
	return s
}

// TestFinish: a proxy and the app behind the proxy answer on a kept connection during
// the stop, announce the close, and accept no new connection.
func TestFinish(t *testing.T) {
	app := start(t, "frontend web\n  bind :8080\n")
	proxy := start(t, "backend app\n  server app "+app.listener.Addr().String()+"\n")
	addr := proxy.listener.Addr().String()
	conn, err := load.Dial(addr, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := func() (again bool) {
		t.Helper()
		answer, err := conn.HTTP("/", "duck", true)
		if err != nil || answer.Status != http.StatusOK || answer.Size != int64(len("ok")) {
			t.Fatalf("%+v, %v", answer, err)
		}
		return answer.Again
	}
	if !request() {
		t.Error("an answer before the stop announces a close")
	}
	done := make(chan bool)
	go func() { proxy.finish(); close(done) }()
	for !proxy.stopping.Load() { // finish sets stopping first
	}
	if request() {
		t.Error("an answer during the stop announces no close")
	}
	<-done
	if late, err := net.Dial("tcp", addr); err == nil {
		late.Close()
		t.Error("the listener still accepts")
	}
}
