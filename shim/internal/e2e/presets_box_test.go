package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// site is the environment of a server under test: a directory, a port, and the backend that
// holds back the replies to slow requests.
type site struct {
	t       *testing.T
	dir     string
	port    int
	backend *backend
}

func newSite(t *testing.T, port int) *site {
	return &site{t, t.TempDir(), port, newBackend(t)}
}

// addr returns the address at which the server listens.
func (s *site) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// write makes a file in the site's directory with the expanded text; see expand.
func (s *site) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	os.MkdirAll(filepath.Dir(path), 0o755)
	if err := os.WriteFile(path, []byte(s.expand(text)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// expand replaces PORT and DIR by the site's, BACKEND by the backend's port, and SELF by the
// test binary.
func (s *site) expand(text string) string {
	_, backendPort, _ := net.SplitHostPort(s.backend.addr)
	return strings.NewReplacer("PORT", fmt.Sprint(s.port), "BACKEND", backendPort, "DIR", s.dir, "SELF", testutil.Must(os.Executable())).Replace(text)
}

// command expands a command line and splits it at spaces. A ~ stands for a space within an
// argument.
func (s *site) command(line string) []string {
	words := strings.Split(s.expand(line), " ")
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "~", " ")
	}
	return words
}

// backend is an HTTP server that holds back every reply until released is closed.
type backend struct {
	addr     string
	arrived  chan bool
	released chan bool
}

func newBackend(t *testing.T) *backend {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &backend{listener.Addr().String(), make(chan bool, 100), make(chan bool)}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.arrived <- true
		<-g.released
		io.WriteString(w, "served")
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return g
}

// inFlight is a client's unfinished request or transaction. When the backend's replies are
// released, the client goes on to its end.
type inFlight struct {
	t       *testing.T
	backend *backend
	ended   chan error
}

// startRequest runs a client, and returns when the request has arrived at the backend. If
// the server does not use the backend, run itself reports the arrival.
func (s *site) startRequest(run func() error) *inFlight {
	s.t.Helper()
	f := &inFlight{s.t, s.backend, make(chan error, 1)}
	go func() { f.ended <- run() }()
	select {
	case <-s.backend.arrived:
	case err := <-f.ended:
		s.t.Fatalf("the request ended before it was in flight: %v", err)
	case <-time.After(testutil.Patience):
		s.t.Fatal("the request has not arrived at the backend")
	}
	return f
}

// wantInFlight checks that the request is not cut for the given time.
func (f *inFlight) wantInFlight(d time.Duration) {
	f.t.Helper()
	select {
	case err := <-f.ended:
		f.t.Fatalf("the request was cut: %v", err)
	case <-time.After(d): // a cut has no sign that would come earlier
	}
}

// wantFinished releases the backend's replies, and checks that the request succeeds.
func (f *inFlight) wantFinished() {
	f.t.Helper()
	close(f.backend.released)
	select {
	case err := <-f.ended:
		if err != nil {
			f.t.Errorf("the request was cut at its end: %v", err)
		}
	case <-time.After(testutil.Patience):
		f.t.Error("the request does not end")
	}
}

// wantCut checks that the request fails before the backend's replies are released.
func (f *inFlight) wantCut() {
	f.t.Helper()
	f.wantFailure()
	close(f.backend.released)
}

// wantLost releases the backend's replies, and checks that the client finds its transaction
// lost.
func (f *inFlight) wantLost() {
	f.t.Helper()
	close(f.backend.released)
	f.wantFailure()
}

func (f *inFlight) wantFailure() {
	f.t.Helper()
	select {
	case err := <-f.ended:
		if err == nil {
			f.t.Error("the client succeeded, want its request cut")
		}
		f.t.Log("cut:", err)
	case <-time.After(testutil.Patience):
		f.t.Error("the client does not end, want its request cut")
	}
}

// get sends a request that the server can answer only after the backend.
func (s *site) get() error {
	client := http.Client{Timeout: testutil.Patience}
	answer, err := client.Get("http://" + s.addr() + "/slow.jsp")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !strings.Contains(string(text), "served")) {
		err = errors.New(answer.Status)
	}
	return err
}
