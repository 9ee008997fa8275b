// Package presets_test stops real servers with their presets. A server that is not installed,
// or lacks a plugin, skips its test.
package presets_test

import (
	"bufio"
	"context"
	"errors"
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
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

func TestMain(m *testing.M) {
	box.Main(m, map[string]func([]string){"slow-web": slowWeb})
}

// slowWeb serves HTTP on port args[0], and answers with what the backend on port args[1]
// answers. With "graceful" TERM is a graceful stop.
func slowWeb(args []string) {
	server := &http.Server{Addr: "127.0.0.1:" + args[0],
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer, err := http.Get("http://127.0.0.1:" + args[1])
			box.Die(err)
			io.Copy(w, answer.Body)
		})}
	signal.Reset() // back to the defaults: package sigcatch, which the tests import, catches signals
	ended := make(chan error)
	if slices.Contains(args, "graceful") {
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		go func() {
			<-stop
			ended <- server.Shutdown(context.Background())
		}()
	}
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		box.Die(err)
	}
	box.Die(<-ended)
}

// site is the environment of a server under test: a directory with the files of
// testdata/NAME, a port, and the backend that holds back its replies until released is
// closed.
type site struct {
	t        *testing.T
	dir      string
	port     int
	backend  string
	arrived  chan bool
	released chan bool
}

func newSite(t *testing.T, name string) *site {
	t.Helper()
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	s := &site{t, t.TempDir(), box.FreePort(), fmt.Sprint(l.Addr().(*net.TCPAddr).Port), make(chan bool, 100),
		make(chan bool)}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.arrived <- true
		<-s.released
		io.WriteString(w, "served")
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	files := os.DirFS("testdata")
	fs.WalkDir(files, name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		to := filepath.Join(s.dir, strings.TrimPrefix(path, name))
		os.MkdirAll(filepath.Dir(to), 0o755)
		return os.WriteFile(to, []byte(s.expand(string(testutil.Must(fs.ReadFile(files, path))))), 0o755)
	})
	return s
}

// addr returns the address at which the server listens.
func (s *site) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// expand replaces the names of the site's values, and SELF by the test binary.
func (s *site) expand(text string) string {
	return strings.NewReplacer("PORT", fmt.Sprint(s.port), "BACKEND", s.backend, "DIR", s.dir, "SELF",
		testutil.Must(os.Executable())).Replace(text)
}

// boot starts lameduck with flags and the site's server, and waits for its port for as long as
// the server runs.
func (s *site) boot(flags, command string) *box.Box {
	s.t.Helper()
	env := []string{"HOME=" + s.dir, "XDG_DATA_HOME=" + s.dir, "XDG_CONFIG_HOME=" + s.dir}
	b := box.Setup{Env: env}.Boot(s.t, flags, box.Words(s.expand(command))...)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Log(b.Out.All(), b.Err.All())
		}
	})
	for !box.Accepts(s.addr()) { // Java may need half a minute on a busy machine
		if box.HasEnded(b.Pid()) {
			s.t.Fatalf("the server left with %d before it listened", b.WaitExit()) // what it said, the log has
		}
		time.Sleep(5 * time.Millisecond)
	}
	return b
}

// inFlight is a client's unfinished request.
type inFlight struct {
	*site
	ended chan error
}

// request runs a client, and returns when its request has arrived at the backend.
func (s *site) request(run func(s *site) error) *inFlight {
	s.t.Helper()
	f := &inFlight{s, make(chan error, 1)}
	go func() { f.ended <- run(s) }()
	select {
	case <-s.arrived:
	case err := <-f.ended:
		s.t.Fatalf("the request ended before it was in flight: %v", err)
	}
	return f
}

// cutWindow is how long a request must go on after the stop signal to count as not cut: a cut
// has no sign that would come earlier.
const cutWindow = 700 * time.Millisecond

// wantFinished wants the request not to be cut, releases the backend's replies, and wants the
// request to succeed.
func (f *inFlight) wantFinished() {
	f.t.Helper()
	select {
	case err := <-f.ended:
		f.t.Fatalf("the request was cut: %v", err)
	case <-time.After(cutWindow):
	}
	close(f.released)
	f.wantEnd(true)
}

// wantEnd wants the request to end, well or cut.
func (f *inFlight) wantEnd(well bool) {
	f.t.Helper()
	select {
	case err := <-f.ended:
		if (err == nil) != well {
			f.t.Errorf("the request ended with %v, want success: %v", err, well)
		}
	case <-time.After(testutil.Patience):
		f.t.Error("the request does not end")
	}
}

// get sends a request that the server can answer only after the backend, and Tomcat only after it
// has compiled the page.
func get(s *site) error {
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
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

// fastCGI asks php-fpm to run slow.php; see the FastCGI specification.
func fastCGI(s *site) error {
	conn, err := net.Dial("tcp", s.addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	record := func(kind byte, content string) string {
		return string([]byte{1, kind, 0, 1, byte(len(content) >> 8), byte(len(content)), 0, 0}) + content
	}
	params := ""
	for name, value := range map[string]string{"SCRIPT_FILENAME": s.dir + "/slow.php", "REQUEST_METHOD": "GET"} {
		params += string([]byte{byte(len(name)), byte(len(value))}) + name + value
	}
	const begin, param, stdin = 1, 4, 5
	io.WriteString(conn, record(begin, "\x00\x01\x00\x00\x00\x00\x00\x00")+record(param, params)+record(param,
		"")+record(stdin, ""))
	answer, err := io.ReadAll(conn)
	if err == nil && !strings.Contains(string(answer), "served") {
		err = errors.New("unexpected reply: " + string(answer))
	}
	return err
}

// session is a conversation in lines, with a server or with its client program.
type session struct {
	io.Writer
	in *bufio.Reader
}

// dial begins a session with the site's server.
func (s *site) dial() session {
	s.t.Helper()
	conn := testutil.Must(net.Dial("tcp", s.addr()))
	s.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testutil.Patience))
	return session{conn, bufio.NewReader(conn)}
}

// client begins a session with a client program of the site's server.
func (s *site) client(command string) session {
	s.t.Helper()
	words := box.Words(s.expand(command))
	cmd := exec.Command(words[0], words[1:]...)
	in, out := testutil.Must(cmd.StdinPipe()), testutil.Must(cmd.StdoutPipe())
	testutil.Must(0, cmd.Start())
	s.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return session{in, bufio.NewReader(out)}
}

// ask sends a line, if it is not empty, and skips to a line with the prefix.
func (c session) ask(line, prefix string) (reply string, err error) {
	if line != "" {
		fmt.Fprint(c, line+"\r\n")
	}
	for err == nil {
		reply, err = c.in.ReadString('\n')
		if strings.HasPrefix(reply, prefix) {
			break
		}
	}
	return reply, err
}

// want is ask, and wants a reply, or none if well is false.
func (c session) want(t *testing.T, well bool, line, prefix string) {
	t.Helper()
	if reply, err := c.ask(line, prefix); (err == nil) != well {
		t.Errorf("%s: %q, %v; want a reply: %v", line, reply, err, well)
	}
}

// named returns a preset.
func named(t *testing.T, name string) *preset.Preset {
	t.Helper()
	p, ok := preset.Named(name)
	if !ok {
		t.Fatalf("no preset %q", name)
	}
	return p
}

// wantRecognized checks the preset that preset.Match finds for the command, with and without
// the path of its executable. Go programs have no common sign.
func wantRecognized(b *box.Box, want string) {
	b.T.Helper()
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", b.Pid(), b.Pid()))
	pid, _, _ := strings.Cut(string(text), " ")
	exe, _ := os.Readlink("/proc/" + pid + "/exe")
	cmdline, _ := os.ReadFile("/proc/" + pid + "/cmdline")
	argv := strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00")
	for _, exe := range []string{exe, ""} {
		got := "go"
		if p := preset.Match(exe, argv); p != nil {
			got = p.Name
		}
		if got != want {
			b.T.Errorf("%q %q is recognized as %s, want %s", exe, argv, got, want)
		}
	}
}
