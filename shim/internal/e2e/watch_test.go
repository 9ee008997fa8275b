package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of "lameduck watch", the live view.

// waitView waits for a view that contains text, and returns the views so far.
func (h hookHost) waitView(text string) (list []string) {
	h.t.Helper()
	h.out.waitUntil(h.t, fmt.Sprintf("a view with %q", text), func() bool {
		list = nil
		for _, line := range h.out.collected {
			if view, ok := strings.CutPrefix(line.text, "hook: "); ok {
				list = append(list, view)
			}
		}
		return len(list) > 0 && strings.Contains(list[len(list)-1], text)
	})
	return list
}

// TestWatchPlain: on a pipe every view is one line.
func TestWatchPlain(t *testing.T) {
	h := startHookHost(t, "server", nil)
	h.sendLine("watch --quiet-for=0.5")
	h.waitView("ports " + h.port + "; 0 open, 0 in flight, ")
	c := h.dial("127.0.0.1")
	c.ask("hello")
	h.waitView("; 1 open, 0 in flight, ")
	h.shortConn("127.0.0.1")
	h.waitView(" 1 new; last new connection ")
	h.waitView("; quiet")
	c.Close()
	views := h.waitView("; drained")
	line := regexp.MustCompile(`^\d\d:\d\d:\d\d ports \d+; \d+ open, \d+ in flight, \d+ new; last new connection (none yet|\d+\.\d s ago), byte (none yet|\d+\.\d s ago); peers (none|127.0.0.1 \(1\)); (busy: new connections|settled, but bytes come|quiet|drained)$`)
	for _, view := range views {
		if !line.MatchString(view) {
			t.Errorf("unexpected form of a view: %q", view)
		}
	}
	h.sendLine("send TERM")
	h.out.wait(t, "hook exited 0")
	h.shutDown()
}

// viewNames are the promised names of the JSON view, in order.
const viewNames = "schema time observer scope ports udp unix open in_flight new accepted last_new_ago_ms last_byte_ago_ms settled quiet drained peers probes"

// TestWatchJSON: a view is one JSON object with the same names at all times.
func TestWatchJSON(t *testing.T) {
	h := startHookHost(t, "none", nil)
	h.sendLine("watch --json")
	h.waitView(`"ports":[]`)
	start := time.Now()
	h.sendLine("listen")
	h.port = strings.Fields(h.out.wait(t, "port ").text)[1]
	h.waitView(`"ports":[` + h.port + `]`)
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("watch took %v to find a server", took)
	}
	h.dial("127.0.0.1").ask("hello")
	views := h.waitView(`"peers":[{"peer":"127.0.0.1","open":1}]`)
	for _, view := range views {
		var object map[string]any
		if err := json.Unmarshal([]byte(view), &object); err != nil {
			t.Errorf("%s: %v", view, err)
		}
		var names []string
		for _, m := range regexp.MustCompile(`[{,]"([a-z_]+)":`).FindAllStringSubmatch(strings.Split(view, `"peers":[{`)[0]+`,"peers":,"probes":`, -1) {
			if len(names) == 0 || names[len(names)-1] != m[1] {
				names = append(names, m[1])
			}
		}
		if want := strings.Fields(viewNames); !reflect.DeepEqual(names[:len(want)], want) {
			t.Errorf("names in the view: %v, want %v", names, want)
		}
	}
	var last shim.View
	if err := json.Unmarshal([]byte(views[len(views)-1]), &last); err != nil || last.Schema != 1 || last.Open != 1 || *last.Observer != "sock_diag" || last.Scope != "descriptors" || last.LastNew == nil {
		t.Errorf("%s: %v", views[len(views)-1], err)
	}
	if !strings.Contains(views[0], `"observer":null,`) {
		t.Errorf("view without listeners: %s, want no observer", views[0])
	}
	h.sendLine("send INT")
	h.out.wait(t, "hook exited 0")
	h.shutDown()
}

// startWatch starts "lameduck watch" outside of containers, and waits for the first view.
func startWatch(t *testing.T, args ...string) *box {
	t.Helper()
	t.Parallel()
	b := newProgram(t, nil, syscall.SysProcAttr{}, append([]string{binary, "watch"}, args...)...)
	b.run()
	b.out.waitCount(t, 1)
	return b
}

// TestWatchEnds: watch exits with 0 on TERM, INT and HUP.
func TestWatchEnds(t *testing.T) {
	for name, s := range map[string]unix.Signal{"TERM": unix.SIGTERM, "INT": unix.SIGINT, "HUP": unix.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			b := startWatch(t)
			unix.Kill(b.cmd.Process.Pid, s)
			b.wantExit(0)
		})
	}
}

// TestWatchReader: watch exits with 0 when its reader has closed the pipe; a reader that
// does not read does not delay a signal; a full disk is an error.
func TestWatchReader(t *testing.T) {
	start := func(t *testing.T, stage func(cmd *exec.Cmd)) *exec.Cmd {
		cmd := exec.Command(binary, "watch", "--json")
		cmd.Env = []string{}
		stage(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		return cmd
	}
	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		r, w := pipeEnds(t, pipe)
		cmd := start(t, func(cmd *exec.Cmd) { cmd.Stdout = w })
		w.Close()
		r.Read(make([]byte, 1))
		r.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("stuck", func(t *testing.T) {
		t.Parallel()
		r, w := pipeEnds(t, pipe)
		fillPipe(t, w)
		cmd := start(t, func(cmd *exec.Cmd) { cmd.Stdout = w })
		w.Close()
		testutil.Eventually(t, "watch sleeps with its handlers installed", func() bool {
			return strings.HasPrefix(status(cmd.Process.Pid, "State"), "S") && status(cmd.Process.Pid, "SigCgt") != "0000000000000000"
		})
		time.Sleep(1500 * time.Millisecond) // a view is due every second, and the pipe has no room
		cmd.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(testutil.Patience, func() { cmd.Process.Kill() })
		if err := cmd.Wait(); err != nil || !timer.Stop() {
			t.Error(err)
		}
		r.Close()
	})
	t.Run("full", func(t *testing.T) {
		t.Parallel()
		b := newProgram(t, nil, syscall.SysProcAttr{}, "/bin/sh", "-c", `exec "$0" watch >/dev/full`, binary)
		b.run()
		b.wantExit(125)
		b.wantOneLine("cannot write to standard output: no space left")
	})
}

// TestWatchQuietAtOnce: silence counts from the last byte that the kernel knows of, so an
// idle server is quiet in the first view, and drained without connections.
func TestWatchQuietAtOnce(t *testing.T) {
	h := startHookHost(t, "server", nil)
	h.sendLine("watch --quiet-for=3")
	if views := h.waitView("ports"); !strings.Contains(views[0], "; 0 open, 0 in flight, 0 new; last new connection none yet, byte none yet; peers none; drained") {
		t.Errorf("without connections the first view is %q", views[0])
	}
	h.sendLine("send TERM")
	h.out.wait(t, "hook exited 0")
	h.shutDown()

	h = startHookHostIn(t, asPID1, "server", nil)
	c := h.dial("127.0.0.1")
	c.ask("hello")
	testutil.Eventually(t, "a second of silence, before watch starts", func() bool { return sinceLastByte(c) >= time.Second })
	h.sendLine("watch --quiet-for=1")
	if first := h.waitView("ports")[0]; !regexp.MustCompile(`; 1 open, 0 in flight, 0 new; last new connection none yet, byte [1-9]\.\d s ago; peers 127.0.0.1 \(1\); quiet$`).MatchString(first) {
		t.Errorf("with an idle connection the first view is %q", first)
	}
	h.sendLine("send TERM")
	h.out.wait(t, "hook exited 0")
	h.shutDown()
}

// sinceLastByte returns the time since the kernel last received a byte on a connection.
func sinceLastByte(c *client) (since time.Duration) {
	raw := testutil.Must(c.Conn.(syscall.Conn).SyscallConn())
	err := raw.Control(func(fd uintptr) {
		info := testutil.Must(unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO))
		since = time.Duration(info.Last_data_recv) * time.Millisecond
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return since
}

// TestWatchIdle: watching a thousand idle connections takes less than 30 % of one processor.
func TestWatchIdle(t *testing.T) {
	h := startHookHost(t, "server", nil)
	for range 1000 {
		conn, err := net.Dial("tcp", "127.0.0.1:"+h.port)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	start := time.Now()
	h.sendLine("watch")
	h.waitView("; 1000 open, ")
	time.Sleep(4 * time.Second) // the time over which the test measures
	h.sendLine("send TERM")
	left := h.out.wait(t, "hook exited 0").text
	var used int
	fmt.Sscanf(left[strings.Index(left, "used"):], "used %d ms", &used)
	took := time.Since(start)
	t.Logf("%d ms of processor time in %v", used, took)
	if ratio := float64(used) / float64(took.Milliseconds()); used == 0 || ratio > 0.3 {
		t.Errorf("watch used %d ms of processor time in %v", used, took)
	}
	h.shutDown()
}
