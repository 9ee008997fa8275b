package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
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

// --health in front of a server under the built lameduck.

// ports are those of the tests here, below the ephemeral ones.
var ports atomic.Int32

func freePort() int { return int(20000 + ports.Add(1)) }

// plainWeb is catch with a web server beside it, with TLS or without.
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
	os.Setenv("GODEBUG", "asyncpreemptoff=1") // catch would start anew
	catch()
}

// checked is a web server whose health is asked for.
type healthBox struct {
	*box
	health, target string // host and port
}

func bootHealth(t *testing.T, env []string, flags []string, args ...string) *healthBox {
	t.Helper()
	t.Parallel()
	health, target := freePort(), freePort()
	spec := fmt.Sprintf("--health=:%d=:%d", health, target)
	flags = append([]string{spec, "--grace-period=30"}, flags...)
	b := boot(t, env, append(append(flags, "--"), helperCommand("http", append([]string{strconv.Itoa(target)}, args...)...)...)...)
	b.out.wait(t, "ready")
	return &healthBox{b, fmt.Sprintf("127.0.0.1:%d", health), fmt.Sprintf("127.0.0.1:%d", target)}
}

// ask is a request on a connection of its own: the status and the text, or why there
// are none.
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

// TestHealth: what checks are told before a stop and during one, while the server's
// own port serves on.
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
		"as told":        {kubernetes, "--health-during=fail", false, "503 stopping"},
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
				t.Errorf("while it runs: %s", got)
			}
			start := time.Now()
			s.signal(sig.TERM)
			s.err.wait(t, "holding 2 s")
			testutil.Eventually(t, "checks are told "+c.during, func() bool { return getAnswer(scheme+s.health) == c.during })
			for range 5 {
				if got := getAnswer(scheme + s.health); got != c.during {
					t.Errorf("during the stop: %s", got)
				}
				if got := getAnswer(scheme + s.target); got != "200 mine" {
					t.Errorf("a user's request, during the stop: %s", got)
				}
			}
			s.wantHoldSince(start, 2*time.Second, "elapsed")
		})
	}
}

// TestHealthAlone: without a target the answer is lameduck's; where no hold was asked
// for, it changes at the first stop signal too.
func TestHealthAlone(t *testing.T) {
	t.Parallel()
	url := fmt.Sprintf("127.0.0.1:%d", freePort())
	b := boot(t, nil, append([]string{"--health=" + url, "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	if got := getAnswer("http://" + url + "/anything"); got != "200 ok" {
		t.Errorf("while it runs: %s", got)
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
		t.Errorf("afterwards: %s", got)
	}
}

// TestHealthIsNoTraffic: checks ten times a second, that are passed on, prolong no
// hold, however the traffic is looked at.
func TestHealthIsNoTraffic(t *testing.T) {
	// A network of its own, since without netlink all that the kernel counts is traffic.
	for stage, name := range map[string]string{"stage:own-network": "", "stage:own-network,uid=65534": "nobody", "stage:own-network,no-netlink": "no netlink", "stage:own-network,seccomp": "denied"} {
		for _, until := range []string{"quiet", "drained", "settled"} {
			t.Run(name+" "+until, func(t *testing.T) {
				t.Parallel()
				if strings.Contains(stage, "uid") && !isRoot() {
					t.Skip("only root can become somebody else")
				}
				health, target := freePort(), freePort()
				flags := []string{"--until=" + until, fmt.Sprintf("--health=:%d=:%d", health, target), "--health-during=pass", "--"}
				b := bootStage(t, stage, nil, append(append(quickFlags, flags...), helperCommand("http", strconv.Itoa(target))...)...)
				b.out.wait(t, "ready")
				failed := startChecks(t, b.cmd.Process.Pid, fmt.Sprintf("127.0.0.1:%d", health))
				start := time.Now()
				b.signal(sig.TERM)
				b.out.wait(t, "got TERM")
				failed() // it still serves
				b.wantHoldSince(start, quietFor, until)
				stderr := b.err.all()
				if last := stderr[len(stderr)-1].text; !strings.Contains(last, "; 0 new connections, ") && !strings.Contains(last, "; 0 new connections;") {
					t.Errorf("checks were counted: %s", last)
				}
			})
		}
	}
}

// probe asks ten times a second, in the network of the process pid, until it is told
// to end and say whether all went well.
func startChecks(t *testing.T, pid int, address string) (end func()) {
	over, ended := make(chan bool), make(chan bool)
	var asked int
	go func() {
		defer close(ended)
		runtime.LockOSThread() // for good
		if fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil || unix.Setns(fd, unix.CLONE_NEWNET) != nil {
			t.Errorf("cannot enter the network: %v", err)
			return
		}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			if err := getOnThread(address); err != nil {
				t.Errorf("check %d: %v", asked, err)
				return
			}
			asked++
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(over); <-ended }
}

// askPlainly asks on this very thread.
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

// TestHealthCountsOthers: beside checks, what else comes to the server holds, however
// short it is.
func TestHealthCountsOthers(t *testing.T) {
	for stage, name := range map[string]string{"stage:own-network": "sock_diag", "stage:own-network,no-netlink": "proc"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			health, target := freePort(), freePort()
			flags := []string{"--until=quiet", fmt.Sprintf("--health=:%d=:%d", health, target), "--health-during=pass", "--"}
			b := bootStage(t, stage, nil, append(append(quickFlags, flags...), helperCommand("http", strconv.Itoa(target))...)...)
			b.out.wait(t, "ready")
			checks := startChecks(t, b.cmd.Process.Pid, fmt.Sprintf("127.0.0.1:%d", health))
			b.signal(sig.TERM)
			b.err.wait(t, "until quiet")
			users := startChecks(t, b.cmd.Process.Pid, fmt.Sprintf("127.0.0.1:%d", target))
			time.Sleep(quietFor) // the traffic that there is
			users()
			last := time.Now()
			b.out.wait(t, "got TERM")
			checks()
			b.wantHoldSince(last, quietFor-200*time.Millisecond, "quiet")
		})
	}
}

// TestHealthTaken: a port that somebody has is an error before anything is started.
func TestHealthTaken(t *testing.T) {
	t.Parallel()
	taken := testutil.Must(net.Listen("tcp", ":0"))
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	b := boot(t, nil, "--health=:"+port, "--", "echo", "started")
	b.wantExit(125)
	if stderr := b.err.all(); len(stderr) != 1 || !strings.Contains(stderr[0].text, "--health=:"+port+": cannot listen on :"+port+": address already in use") || len(b.out.all()) > 0 {
		t.Errorf("it says %v, and %v", stderr, b.out.all())
	}
}

// TestHealthSlow: clients that say nothing, or half of it, or do not read, delay no
// stop.
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
			if held, left := end.Sub(start), time.Since(end); held > 3*time.Second || left > 2*time.Second {
				t.Errorf("the hold took %v, and to leave %v", held, left)
			}
			t.Log(s.err.all())
		})
	}
}

// TestHealthFullPids: no thread is needed to answer, when none can be had.
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
					t.Fatalf("while it runs: %s", got)
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

// TestHealthKept: a checker that keeps its connection is told on it, too.
func TestHealthKept(t *testing.T) {
	s := bootHealth(t, nil, []string{"--delay=1"})
	conn, err := net.Dial("tcp", s.health)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	asks := func(want int) {
		t.Helper()
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		answer, err := http.ReadResponse(in, nil)
		if err != nil || answer.StatusCode != want {
			t.Fatalf("%v, %v; want %d", answer, err, want)
		}
		io.Copy(io.Discard, answer.Body)
	}
	asks(200)
	asks(200)
	start := time.Now()
	s.signal(sig.TERM)
	s.err.wait(t, "holding 1 s")
	testutil.Eventually(t, "checks fail", func() bool { return getAnswer("http://"+s.health) == "503 stopping" })
	asks(503)
	s.wantHoldSince(start, time.Second, "elapsed")
}
