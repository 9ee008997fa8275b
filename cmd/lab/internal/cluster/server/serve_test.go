package main

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	request := func() *http.Response {
		t.Helper()
		if _, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost: web\r\nContent-Length: 4\r\n\r\nduck")); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := new(strings.Builder)
		answer.Write(text)
		if answer.StatusCode != http.StatusOK || !strings.HasSuffix(text.String(), "ok") {
			t.Fatalf("answer %s", text)
		}
		return answer
	}
	if request().Close {
		t.Error("an answer before the stop announces a close")
	}
	done := make(chan bool)
	go func() { proxy.finish(); close(done) }()
	for !proxy.stopping.Load() { // finish sets stopping first
	}
	if !request().Close {
		t.Error("an answer during the stop announces no close")
	}
	<-done
	if late, err := net.Dial("tcp", addr); err == nil {
		late.Close()
		t.Error("the listener still accepts")
	}
}
