package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of --health in front of a server under the built lameduck.

// ports counts the ports given out, all below the ephemeral ports.
var ports atomic.Int32

// freePort returns a port that no other test uses.
func freePort() int { return int(20000 + ports.Add(1)) }

// plainWeb is catch with a web server in the same process, with TLS or without.
func plainWeb(port string, secure bool) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	die(err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "mine\n") }))
	server.Listener.Close()
	server.Listener = listener
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	catch()
}

// healthBox is a web server under lameduck with --health.
type healthBox struct {
	*box
	health, target string // host and port
}

// bootHealth starts the http helper with --health, on free ports, and waits until the helper
// is ready. args are further arguments of the helper.
func bootHealth(t *testing.T, env []string, flags []string, args ...string) *healthBox {
	t.Helper()
	t.Parallel()
	return bootHealthStage(t, "stage", env, append([]string{"--grace-period=30"}, flags...), args...)
}

// bootHealthUntil is bootHealth in another stage, with a hold until a condition.
func bootHealthUntil(t *testing.T, stage, until string) *healthBox {
	t.Helper()
	return bootHealthStage(t, stage, nil, append([]string{"--until=" + until, "--health-during=pass"}, quiet2sFlags...))
}

func bootHealthStage(t *testing.T, stage string, env, flags []string, args ...string) *healthBox {
	t.Helper()
	health, target := freePort(), freePort()
	flags = append([]string{fmt.Sprintf("--health=:%d=:%d", health, target)}, flags...)
	b := bootStage(t, stage, env, append(append(flags, "--"), helperCommand("http", append([]string{strconv.Itoa(target)}, args...)...)...)...)
	b.out.wait(t, "ready")
	return &healthBox{b, fmt.Sprintf("127.0.0.1:%d", health), fmt.Sprintf("127.0.0.1:%d", target)}
}

// getAnswer sends a request on a new connection, and returns the status code and the body,
// "refused", "reset" or another error.
func getAnswer(url string) string {
	client := http.Client{Timeout: testutil.Patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Get(url)
	switch {
	case err != nil && strings.Contains(err.Error(), "refused"):
		return "refused"
	case err != nil && (strings.Contains(err.Error(), "reset") || strings.Contains(err.Error(), "EOF")):
		return "reset"
	case err != nil:
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d %s", answer.StatusCode, strings.TrimSpace(string(text)))
}

// TestHealth: the answers to health checks before and during a stop. The server's own port
// keeps serving.
func TestHealth(t *testing.T) {
	kubernetes := []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}
	for name, c := range map[string]struct {
		env    []string
		flags  string
		secure bool
		during string
	}{
		"outside":        {nil, "", false, "503 stopping"},
		"kubernetes":     {kubernetes, "", false, "200 mine"},
		"by flag":        {kubernetes, "--health-during=fail", false, "503 stopping"},
		"closed":         {nil, "--health-during=close", false, "refused"},
		"passed":         {nil, "--health-during=pass", false, "200 mine"},
		"TLS":            {nil, "--health-during=pass", true, "200 mine"},
		"TLS, failed":    {nil, "", true, "reset"},
		"TLS, and close": {nil, "--health-during=close", true, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, args := "http://", []string(nil)
			if c.secure {
				scheme, args = "https://", []string{"tls"}
			}
			s := bootHealth(t, c.env, append(strings.Fields(c.flags), "--delay=2"), args...)
			if got := getAnswer(scheme + s.health); got != "200 mine" {
				t.Errorf("before the stop: %s", got)
			}
			start := time.Now()
			s.signal(sig.TERM)
			s.err.wait(t, "holding 2 s")
			testutil.Eventually(t, "checks get "+c.during, func() bool { return getAnswer(scheme+s.health) == c.during })
			for range 5 {
				if got := getAnswer(scheme + s.health); got != c.during {
					t.Errorf("check during the stop: %s, want %s", got, c.during)
				}
				if got := getAnswer(scheme + s.target); got != "200 mine" {
					t.Errorf("a user's request during the stop: %s", got)
				}
			}
			s.wantHoldSince(start, 2*time.Second, "elapsed")
		})
	}
}

// TestHealthAlone: without a target lameduck itself answers. The answer changes at the first
// stop signal, with and without a hold.
func TestHealthAlone(t *testing.T) {
	t.Parallel()
	url := fmt.Sprintf("127.0.0.1:%d", freePort())
	b := boot(t, nil, append([]string{"--health=" + url, "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	if got := getAnswer("http://" + url + "/anything"); got != "200 ok" {
		t.Errorf("before the stop: %s", got)
	}
	b.signal(sig.HUP)
	b.out.wait(t, "got HUP")
	if got := getAnswer("http://" + url); got != "200 ok" {
		t.Errorf("after a HUP: %s", got)
	}
	b.signal(sig.TERM)
	b.out.wait(t, "got TERM")
	testutil.Eventually(t, "checks fail", func() bool { return getAnswer("http://"+url) == "503 stopping" })
	b.sendLine("exit 7")
	b.wantExit(7)
	if got := getAnswer("http://" + url); got != "refused" {
		t.Errorf("after the exit: %s", got)
	}
}

// TestHealthIsNoTraffic: checks ten times a second, passed through to the target, prolong no
// hold, whatever the source of samples.
func TestHealthIsNoTraffic(t *testing.T) {
	// Each box has a network namespace, because without netlink all connections of the namespace count.
	for stage, name := range map[string]string{"stage:own-network": "", "stage:own-network,uid=65534": "nobody", "stage:own-network,no-netlink": "no netlink", "stage:own-network,seccomp": "denied"} {
		for _, until := range []string{"quiet", "drained", "settled"} {
			t.Run(name+" "+until, func(t *testing.T) {
				t.Parallel()
				if strings.Contains(stage, "uid") && !isRoot() {
					t.Skip("needs root, to become another user")
				}
				b := bootHealthUntil(t, stage, until)
				endChecks := startChecks(t, b.cmd.Process.Pid, b.health)
				start := time.Now()
				b.signal(sig.TERM)
				b.out.wait(t, "got TERM")
				endChecks() // while the command still serves
				b.wantHoldSince(start, quiet2s, until)
				wantMatch(t, b.report(), ": nothing in flight.*; 0 new connections(,|;|$)")
			})
		}
	}
}

// otherContainer returns a connection in the network namespace of a process: see
// connectedToItself.
func otherContainer(t *testing.T, pid int) net.Conn {
	t.Helper()
	found := make(chan net.Conn)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		fd := testutil.Must(unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0))
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			panic(err)
		}
		found <- connectedToItself()
	}()
	return <-found
}

// startChecks sends a request every 100 ms, in the network namespace of the process pid,
// until end is called. A failed request is a test error.
func startChecks(t *testing.T, pid int, address string) (end func()) {
	stop, stopped := make(chan bool), make(chan bool)
	var requests int
	go func() {
		defer close(stopped)
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
		}
		if err != nil {
			t.Errorf("cannot enter the network namespace of process %d: %v", pid, err)
			return
		}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			if err := getOnThread(address); err != nil {
				t.Errorf("check %d: %v", requests, err)
				return
			}
			requests++
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

// getOnThread sends a request on the current thread. (net/http would use other goroutines.)
func getOnThread(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	text, err := io.ReadAll(conn)
	if err == nil && !strings.HasPrefix(string(text), "HTTP/1.1 200 ") {
		err = fmt.Errorf("%q", text)
	}
	return err
}

// TestHealthCountsOthers: connections other than checks prolong the hold, however short.
func TestHealthCountsOthers(t *testing.T) {
	for stage, name := range map[string]string{"stage:own-network": "sock_diag", "stage:own-network,no-netlink": "proc"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bootHealthUntil(t, stage, "quiet")
			defer otherContainer(t, b.cmd.Process.Pid).Close()
			endChecks := startChecks(t, b.cmd.Process.Pid, b.health)
			b.signal(sig.TERM)
			b.err.wait(t, "until quiet")
			endRequests := startChecks(t, b.cmd.Process.Pid, b.target)
			time.Sleep(quiet2s) // the traffic goes on for this long
			endRequests()
			last := time.Now()
			b.out.wait(t, "got TERM")
			endChecks()
			b.wantHoldSince(last, quiet2s-200*time.Millisecond, "quiet")
		})
	}
}

// TestHealthTaken: a port in use is an error before the command starts.
func TestHealthTaken(t *testing.T) {
	t.Parallel()
	taken := testutil.Must(net.Listen("tcp", ":0"))
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	b := boot(t, nil, "--health=:"+port, "--", "echo", "started")
	b.wantExit(125)
	b.wantOneLine("--health=:" + port + " (LAMEDUCK_HEALTH): cannot listen on :" + port + ": address already in use")
}

// TestHealthSlow: clients that send no request or half a request, or do not read the answer,
// delay no stop.
func TestHealthSlow(t *testing.T) {
	for _, during := range []string{"fail", "pass", "close"} {
		t.Run(during, func(t *testing.T) {
			s := bootHealth(t, nil, []string{"--until=quiet", "--delay=0", "--quiet-for=1", "--health-during=" + during})
			for i := range 50 {
				conn, err := net.Dial("tcp", s.health)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				io.WriteString(conn, []string{"", "G", "GET / HTTP/1.1\r\nHost: x\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"}[i%4])
			}
			start := time.Now()
			s.signal(sig.TERM)
			s.out.wait(t, "got TERM")
			end := time.Now()
			s.sendLine("exit 7")
			s.wantExit(7)
			if held, exited := end.Sub(start), time.Since(end); held > 3*time.Second || exited > 2*time.Second {
				t.Errorf("the hold took %v and the exit %v, want at most 3 s and 2 s; stderr:\n%v", held, exited, s.err.all())
			}
		})
	}
}

// TestHealthFullPids: an answer needs no new thread, so that a full pids cgroup does no harm.
func TestHealthFullPids(t *testing.T) {
	for round := range 3 {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			group := newCgroup(t, "pids")
			url := fmt.Sprintf("127.0.0.1:%d", freePort())
			b := bootStage(t, "stage:one-cpu,cgroup="+string(group), nil, append([]string{"-d", "1", "--until=quiet", "--quiet-for=0.5", "--health=" + url, "--"}, helperCommand("sturdy")...)...)
			b.out.wait(t, "ready")
			threads := status(b.cmd.Process.Pid, "Threads")
			group.set(t, "pids.max", group.get(t, "pids.current")+20)
			b.sendLine("fill")
			b.out.wait(t, "full")
			for range 100 {
				if got := getAnswer("http://" + url); got != "200 ok" {
					t.Fatalf("before the stop: %s", got)
				}
			}
			b.wantTermAfterHold(func() {
				testutil.Eventually(t, "checks fail", func() bool { return getAnswer("http://"+url) == "503 stopping" })
			})
			if now := status(b.cmd.Process.Pid, "Threads"); now != threads {
				t.Errorf("%s threads, later %s", threads, now)
			}
			b.wantPromptExit()
		})
	}
}

// TestHealthKept: a checker gets the new answer on a kept connection too.
func TestHealthKept(t *testing.T) {
	s := bootHealth(t, nil, []string{"--delay=1"})
	conn, err := net.Dial("tcp", s.health)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	wantStatus := func(want int) {
		t.Helper()
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		answer, err := http.ReadResponse(in, nil)
		if err != nil || answer.StatusCode != want {
			t.Fatalf("answer %v, %v; want status %d", answer, err, want)
		}
		io.Copy(io.Discard, answer.Body)
	}
	wantStatus(200)
	wantStatus(200)
	start := time.Now()
	s.signal(sig.TERM)
	s.err.wait(t, "holding 1 s")
	testutil.Eventually(t, "checks fail", func() bool { return getAnswer("http://"+s.health) == "503 stopping" })
	wantStatus(503)
	s.wantHoldSince(start, time.Second, "elapsed")
}
