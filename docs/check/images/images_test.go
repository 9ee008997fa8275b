// Package images builds the image of a release, Dockerfile.example and the Go example of
// docs/examples/docker, and stops the last two under load. Podman does the work; the images
// in FROM are made of this machine's programs.
package images

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	root     = "../../.."
	patience = time.Minute     // bounds a wait on a busy machine
	lag      = 2 * time.Second // for which the balancer still sends after the stop
	enough   = 20              // requests after the stop, on a machine too busy to send all
)

// TestMain runs the tests in a network namespace, in which the containers' networks end.
func TestMain(m *testing.M) {
	const inside = "LAMEDUCK_TEST_NETWORK"
	unshare, missing := exec.LookPath("unshare")
	if os.Geteuid() == 0 && missing == nil && os.Getenv(inside) == "" {
		self, _ := os.Executable()
		words := append([]string{"unshare", "--net", self}, os.Args[1:]...)
		fmt.Fprintln(os.Stderr, syscall.Exec(unshare, words, append(os.Environ(), inside+"=own")))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// engine is the path of a podman with a store of its own: see build.sh.
type engine string

func TestImages(t *testing.T) {
	for _, program := range []string{"podman", "runc", "conmon", "ip", "nsenter", "haproxy", "make"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give the containers a network")
	}
	dir, err := os.MkdirTemp("", "podman") // t.TempDir's path is too long for podman's sockets
	if err != nil {
		t.Fatal(err)
	}
	e := engine(dir + "/podman")
	t.Cleanup(func() {
		exec.Command(string(e), "rm", "-a", "-f", "-t", "0").Run()
		exec.Command("umount", "-l", dir+"/root/overlay").Run()
		os.RemoveAll(dir)
	})
	build := exec.Command("./build.sh", dir)
	if out, err := build.CombinedOutput(); err != nil && build.ProcessState.ExitCode() == 77 {
		t.Skipf("podman does not work:\n%s", out)
	} else if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	e.needsNothing(t, "ghcr.io/lameduck-init/lameduck:1")
	e.needsNothing(t, "source")
	behind(t)
	config, err := filepath.Abs(root + "/docs/examples/docker/haproxy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("stops", func(t *testing.T) {
		e.stops(t, 1, "USR1", "0", "-v", config+":/usr/local/etc/haproxy/haproxy.cfg:ro", "haproxy-lameduck")
		e.stops(t, 3, "TERM", "143", "go-lameduck")
	})
}

// must runs a program, which must not fail, and returns both output streams.
func must(t *testing.T, words ...string) string {
	t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (e engine) must(t *testing.T, words ...string) string {
	t.Helper()
	return must(t, append([]string{string(e)}, words...)...)
}

// needsNothing checks that an image runs without privileges, and what it runs.
func (e engine) needsNothing(t *testing.T, image string) {
	t.Helper()
	config := e.must(t, "image", "inspect", "-f", "{{.Config.User}} {{.Config.Entrypoint}} {{.Config.Cmd}}", image)
	if config != "65532:65532 [/lameduck] []" {
		t.Errorf("%s: configuration %s", image, config)
	}
	out := e.must(t, "run", "--rm", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", image, "--version")
	if !strings.HasPrefix(out, "lameduck version ") {
		t.Errorf("%s: --version: %s", image, out)
	}
}

// behind serves the requests that HAProxy passes on.
func behind(t *testing.T) {
	t.Helper()
	must(t, "ip", "link", "set", "lo", "up")
	must(t, "ip", "addr", "add", "10.77.0.1/32", "dev", "lo")
	listener, err := net.Listen("tcp", "10.77.0.1:8081")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/slow" {
			time.Sleep(4 * time.Second)
		}
		io.WriteString(w, "ok\n")
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
}

// stops stops an image twice under a load that goes on for a while. No request may be lost;
// without a hold requests must be lost, or the load is blind.
func (e engine) stops(t *testing.T, number int, signal, code string, words ...string) {
	words = append([]string{"-e", "LAMEDUCK_GRACE_PERIOD=30", "-e", "LAMEDUCK_LOG_FORMAT=json"}, words...)
	t.Run(signal, func(t *testing.T) {
		t.Parallel()
		name, count := e.stop(t, number, words, func(logs string, _ tally) bool { return strings.Contains(logs, `"trigger":`) })
		if len(count.failures) > 0 {
			t.Errorf("%d of %d requests failed: %v", len(count.failures), count.sent, count.failures)
		}
		if got := e.must(t, "inspect", "-f", "{{.State.ExitCode}}", name); got != code {
			t.Errorf("exit code %s, want %s", got, code)
		}
		report := regexp.MustCompile(`"trigger":"` + signal + `".*"ended":"quiet".*"sent":\[\{"signal":"` + signal + `","at_ms":\d+\}\]`)
		if logs := e.must(t, "logs", name); !report.MatchString(logs) {
			t.Errorf("not held until quiet, with %s:\n%s", signal, logs)
		}
	})
	t.Run(signal+" without a hold", func(t *testing.T) {
		t.Parallel()
		words := append([]string{"-e", "LAMEDUCK_UNTIL=elapsed"}, words...)
		e.stop(t, number+1, words, func(_ string, count tally) bool { return len(count.failures) > 0 })
	})
}

// stop starts a container and stops it while requests come, which go on for lag after begun
// is true.
func (e engine) stop(t *testing.T, number int, words []string, begun func(logs string, count tally) bool) (string, tally) {
	t.Helper()
	name, url := e.start(t, number, words...)
	e.until(t, name, func(string) bool { return ask(&http.Client{Timeout: time.Second}, url) == nil })
	l := press(url)
	defer l.kept.CloseIdleConnections()
	e.until(t, name, func(string) bool {
		count := l.add(tally{})
		return count.ended >= 40 && count.slow > 1
	})
	before := l.add(tally{})
	if len(before.failures) > 0 {
		t.Fatal("before the stop: ", before.failures)
	}
	stopped := make(chan string, 1)
	go func() {
		out, err := exec.Command(string(e), "stop", "-t", "30", name).CombinedOutput()
		stopped <- fmt.Sprint(string(out), err)
	}()
	e.until(t, name, func(logs string) bool {
		before = l.add(tally{})
		return begun(logs, before)
	})
	time.Sleep(lag)
	close(l.quit)
	l.calls.Wait()
	if late := l.count.sent - before.sent; late < enough {
		t.Errorf("only %d requests came after the stop", late)
	}
	if out := <-stopped; strings.Contains(out, "SIGKILL") || !strings.HasSuffix(out, "<nil>") {
		t.Errorf("podman stop: %s", out)
	}
	return name, l.count
}

// start runs a container in a network whose other end is in this namespace; number tells
// the networks apart. The container ends after two minutes at the latest.
func (e engine) start(t *testing.T, number int, words ...string) (name, url string) {
	t.Helper()
	name, ours, theirs := fmt.Sprintf("c%d", number), fmt.Sprintf("10.77.%d.1", number), fmt.Sprintf("10.77.%d.2", number)
	e.must(t, append([]string{"run", "-d", "--timeout", "120", "--name", name}, words...)...)
	pid := e.must(t, "inspect", "-f", "{{.State.Pid}}", name)
	must(t, "sh", "-ec", `
		ip link add $1 type veth peer name eth0 netns $2
		ip addr add $3/24 dev $1
		ip link set $1 up
		nsenter -n -t $2 ip addr add $4/24 dev eth0
		nsenter -n -t $2 ip link set eth0 up
		nsenter -n -t $2 ip route add default via $3`, "sh", name, pid, ours, theirs)
	return name, "http://" + theirs + ":8080/"
}

// until polls a condition, which may depend on the container's logs.
func (e engine) until(t *testing.T, name string, reached func(logs string) bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		logs := e.must(t, "logs", name)
		if reached(logs) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited in vain:\n%s", logs)
		}
	}
}
