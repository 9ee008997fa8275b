// Package presets_test stops real servers with their presets. A server that is not installed,
// or lacks a plugin, skips its test.
package presets_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

func TestMain(m *testing.M) {
	box.Main(m, map[string]func([]string){"serve": serve})
}

// serve serves on port args[0], as further words say: HTTP/2 without TLS ("h2") or HTTP/1 too ("both"), instead of
// HTTP/1; behind the line of the PROXY protocol ("proxied"); the answers of a "backend" on the port that
// follows; "graceful", TERM is a graceful stop.
func serve(args []string) {
	is := func(word string) bool { return slices.Contains(args, word) }
	server := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if is("backend") {
			answer, err := http.Get("http://127.0.0.1:" + args[slices.Index(args, "backend")+1])
			box.Die(err)
			io.Copy(w, answer.Body)
		}
	})}
	server.Protocols.SetHTTP1(!is("h2"))
	server.Protocols.SetUnencryptedHTTP2(is("h2") || is("both"))
	signal.Reset() // back to the defaults: package sigcatch, which the tests import, catches signals
	ctx := context.Background()
	if is("graceful") {
		ctx, _ = signal.NotifyContext(ctx, syscall.SIGTERM)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	box.Die(err)
	go server.Serve(proxied{l, is("proxied")})
	<-ctx.Done()
	box.Die(server.Shutdown(context.Background()))
}

// proxied takes the first line from each connection, if there is one.
type proxied struct {
	net.Listener
	hasLine bool
}

func (l proxied) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	for b := make([]byte, 1); l.hasLine && err == nil && b[0] != '\n'; {
		_, err = conn.Read(b)
	}
	return conn, err
}

// site is the environment of a server under test: a directory with the files of
// testdata/NAME, a port, and the backend that holds back its replies until released is
// closed.
type site struct {
	t        *testing.T
	dir      string
	port     int
	names    *strings.Replacer // of the site's values
	arrived  chan bool
	released chan bool
}

func newSite(t *testing.T, name string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), port: box.FreePort(), arrived: make(chan bool, 100), released: make(chan bool)}
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.arrived <- true
		<-s.released
		io.WriteString(w, "served")
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	s.names = strings.NewReplacer("PORT", fmt.Sprint(s.port), "OTHER", fmt.Sprint(box.FreePort()), "DIR", s.dir,
		"BACKEND", fmt.Sprint(l.Addr().(*net.TCPAddr).Port), "SELF", testutil.Must(os.Executable()))
	if name != "" {
		testutil.Must(0, os.CopyFS(s.dir, os.DirFS("testdata/"+name)))
	}
	filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, _ error) error {
		if text, err := os.ReadFile(path); err == nil {
			testutil.WriteFile(t, path, s.names.Replace(string(text)))
		}
		return nil
	})
	return s
}

// addr returns the address at which the server listens.
func (s *site) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// command returns a program of a command line with the names of the site's values, and the words of longer.
func (s *site) command(line string) *exec.Cmd {
	words := box.Words(s.names.Replace(longer.Replace(line)))
	return exec.Command(words[0], words[1:]...)
}

// boot starts lameduck with flags and the site's server, and waits for its port for as long as
// the server runs.
func (s *site) boot(flags string, words ...string) *box.Box {
	s.t.Helper()
	env := []string{"HOME=" + s.dir, "XDG_DATA_HOME=" + s.dir, "XDG_CONFIG_HOME=" + s.dir}
	b := box.Setup{Env: env}.Boot(s.t, s.names.Replace(flags), words...)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Log(b.Out.All(), b.Err.All())
		}
	})
	for !box.Accepts(nil, s.addr()) { // Java may need half a minute on a busy machine
		if box.HasEnded(b.Pid()) {
			s.t.Fatalf("the server left with %d before it listened", b.WaitExit()) // what it said, the log has
		}
		time.Sleep(5 * time.Millisecond)
	}
	return b
}
