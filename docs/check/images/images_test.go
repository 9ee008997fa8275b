// Package images builds the image of a release, Dockerfile.example and the Go example of
// docs/examples/docker, and stops the last two under load. Podman does the work; the images
// in FROM are made of this machine's programs.
package images

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

const (
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
		panic(syscall.Exec(unshare, words, append(os.Environ(), inside+"=own")))
	}
	os.Exit(m.Run())
}

func TestImages(t *testing.T) {
	dir, err := os.MkdirTemp("", "podman") // t.TempDir's path is too long for podman's sockets
	if err != nil {
		t.Fatal(err)
	}
	os.Setenv("PATH", dir+":"+os.Getenv("PATH")) // build.sh makes a podman there, with a store of its own
	t.Cleanup(func() {
		exec.Command(dir+"/podman", "rm", "-a", "-f", "-t", "0").Run()
		exec.Command("umount", "-l", dir+"/root/overlay").Run()
		os.RemoveAll(dir)
	})
	build := exec.Command("./build.sh", dir)
	if out, err := build.CombinedOutput(); build.ProcessState.ExitCode() == 77 {
		t.Skipf("%s", out)
	} else if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	behind(t)
	stops(t, 1, "USR1", "0", "-v", dir+"/haproxy.cfg:/usr/local/etc/haproxy/haproxy.cfg:ro", "haproxy-lameduck")
	stops(t, 3, "TERM", "143", "go-lameduck")
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
func stops(t *testing.T, number int, signal, code string, words ...string) {
	words = append([]string{"-e", "LAMEDUCK_GRACE_PERIOD=60", "-e", "LAMEDUCK_LOG_FORMAT=json"}, words...)
	t.Run(signal, func(t *testing.T) {
		t.Parallel()
		name, kinds := stop(t, number, words, func(logs string, _ int) bool { return strings.Contains(logs, `"trigger":`) })
		if load.Failed(kinds) > 0 {
			t.Errorf("of %d requests %s", load.Ended(kinds), load.Summary(kinds))
		}
		if got := must(t, "podman", "inspect", "-f", "{{.State.ExitCode}}", name); got != code {
			t.Errorf("exit code %s, want %s", got, code)
		}
		report := regexp.MustCompile(`"trigger":"` + signal + `".*"ended":"quiet".*` +
			`"sent":\[\{"signal":"` + signal + `","at_ms":\d+\}\]`)
		if logs := must(t, "podman", "logs", name); !report.MatchString(logs) {
			t.Errorf("not held until quiet, with %s:\n%s", signal, logs)
		}
	})
	t.Run(signal+" without a hold", func(t *testing.T) {
		t.Parallel()
		stop(t, number+1, append([]string{"-e", "LAMEDUCK_UNTIL=elapsed"}, words...),
			func(_ string, failed int) bool { return failed > 0 })
	})
}

// stop starts a container and stops it while requests come, which go on for lag after begun
// is true.
func stop(t *testing.T, number int, words []string, begun func(logs string, failed int) bool) (name string,
	kinds map[load.Kind]int) {
	t.Helper()
	name, addr := start(t, number, words...)
	until(t, name, func(string) bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	sender, quit := press(addr)
	failed := func() int { return load.Failed(sender.Count().Kinds) }
	until(t, name, func(string) bool { return sender.Count().Sent >= 60 })
	if failed() > 0 {
		t.Fatal("before the stop: ", load.Summary(sender.Count().Kinds))
	}
	podman := exec.Command("podman", "stop", "-t", "60", name)
	var said strings.Builder
	podman.Stdout, podman.Stderr = &said, &said
	if err := podman.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, name, func(logs string) bool { return begun(logs, failed()) })
	before := sender.Count().Sent
	time.Sleep(lag)
	quit()
	tally := sender.Count()
	if late := tally.Sent - before; late < enough {
		t.Errorf("only %d requests came after the stop", late)
	}
	if err := podman.Wait(); err != nil || strings.Contains(said.String(), "SIGKILL") {
		t.Errorf("podman stop: %v: %s", err, &said)
	}
	return name, tally.Kinds
}

// start runs a container in a network whose other end is in this namespace; number tells
// the networks apart. The container ends after two minutes at the latest.
func start(t *testing.T, number int, words ...string) (name, addr string) {
	t.Helper()
	name = fmt.Sprintf("c%d", number)
	must(t, append([]string{"podman", "run", "-d", "--timeout", "120", "--name", name}, words...)...)
	pid := must(t, "podman", "inspect", "-f", "{{.State.Pid}}", name)
	must(t, "sh", "-ec", `
		ip link add c$1 type veth peer name eth0 netns $2
		ip addr add 10.77.$1.1/24 dev c$1
		ip link set c$1 up
		nsenter -n -t $2 ip addr add 10.77.$1.2/24 dev eth0
		nsenter -n -t $2 ip link set eth0 up
		nsenter -n -t $2 ip route add default via 10.77.$1.1`, "sh", fmt.Sprint(number), pid)
	return name, fmt.Sprintf("10.77.%d.2:8080", number)
}

// until polls a condition, which may depend on the container's logs.
func until(t *testing.T, name string, reached func(logs string) bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		logs := must(t, "podman", "logs", name)
		if reached(logs) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited in vain:\n%s", logs)
		}
	}
}

// press sends requests to a server, one every 25 ms until quit is called, whatever the earlier ones
// do. Every other request has a connection of its own, and one in 17 is answered after four
// seconds, longer than the silence that a hold waits for. Nothing is retried.
func press(addr string) (sender *load.Sender, quit func()) {
	sender = &load.Sender{Began: time.Now()}
	fresh, kept := &load.Client{Addr: addr}, &load.Client{Addr: addr, Keep: true}
	ctx, cancel := context.WithCancel(context.Background())
	ended, n := make(chan struct{}), 0
	go func() {
		defer close(ended)
		sender.Send(ctx, func() (pause time.Duration, ask func(planned time.Time) load.Kind) {
			client, path := fresh, "/"
			n++
			if n%2 == 0 {
				client = kept
			}
			if n%17 == 0 {
				path = "/slow"
			}
			return 25 * time.Millisecond, func(planned time.Time) load.Kind {
				return client.HTTP(path, "duck", planned.Add(patience))
			}
		})
	}()
	return sender, func() {
		cancel()
		<-ended
		kept.Close()
	}
}
