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

// site is where a server of the tests lives: a directory, a port, and the gate
// at which its slow requests wait.
type site struct {
	t       *testing.T
	dir     string
	port    int
	backend *backend
}

func newSite(t *testing.T, port int) *site {
	return &site{t, t.TempDir(), port, newBackend(t)}
}

// addr is where the server listens.
func (s *site) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// write makes a file of text, in which PORT, BACKEND and DIR stand for the site's.
func (s *site) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	os.MkdirAll(filepath.Dir(path), 0o755)
	if err := os.WriteFile(path, []byte(s.expand(text)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *site) expand(text string) string {
	_, gate, _ := net.SplitHostPort(s.backend.addr)
	return strings.NewReplacer("PORT", fmt.Sprint(s.port), "BACKEND", gate, "DIR", s.dir, "SELF", testutil.Must(os.Executable())).Replace(text)
}

// words are a command, in which PORT, BACKEND and DIR stand for the site's, and ~ for
// a space that does not part words.
func (s *site) command(command string) []string {
	words := strings.Split(s.expand(command), " ")
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "~", " ")
	}
	return words
}

// gate is a backend whose one answer is held back until it is released.
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

// flight is something that a client has under way with the server: a request, a
// transaction. It goes on to its end when the site's gate is released.
type inFlight struct {
	t       *testing.T
	backend *backend
	ended   chan error
}

// fly starts one, and returns when it is in flight: run says so itself where the
// server does not ask at the gate.
func (s *site) startRequest(run func() error) *inFlight {
	s.t.Helper()
	f := &inFlight{s.t, s.backend, make(chan error, 1)}
	go func() { f.ended <- run() }()
	select {
	case <-s.backend.arrived:
	case err := <-f.ended:
		s.t.Fatalf("it ended before it was in flight: %v", err)
	case <-time.After(testutil.Patience):
		s.t.Fatal("it is not in flight")
	}
	return f
}

// goesOn wants it to be unhurt for some time.
func (f *inFlight) wantInFlight(moment time.Duration) {
	f.t.Helper()
	select {
	case err := <-f.ended:
		f.t.Fatalf("cut: %v", err)
	case <-time.After(moment):
	}
}

// finishes lets it go on and wants a good end.
func (f *inFlight) wantFinished() {
	f.t.Helper()
	close(f.backend.released)
	select {
	case err := <-f.ended:
		if err != nil {
			f.t.Errorf("cut at its end: %v", err)
		}
	case <-time.After(testutil.Patience):
		f.t.Error("it does not end")
	}
}

// cut wants it to fail while it is still under way.
func (f *inFlight) wantCut() {
	f.t.Helper()
	select {
	case err := <-f.ended:
		if err == nil {
			f.t.Error("it ended well, want it cut")
		}
		f.t.Log("cut:", err)
	case <-time.After(testutil.Patience):
		f.t.Error("it goes on, want it cut")
	}
	close(f.backend.released)
}

// get is a request that the server can answer only when the gate has.
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
