package hold_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// startWatch starts lameduck watch, an ordinary process, in a network.
func startWatch(t *testing.T, n *box.Network, flags string) *box.Box {
	return box.Setup{Network: n, Outside: true}.Boot(t, "watch --quiet-for=1 "+flags)
}

// TestWatch: a view is one line at all times, plain or a JSON object with the same names.
// Silence counts from the last byte that the kernel knows of, so an idle server is quiet in the
// first view. Without a stop INT ends watch in silence.
func TestWatch(t *testing.T) {
	t.Parallel()
	plain := regexp.MustCompile(`^\d\d:\d\d:\d\d ports \d+; \d+ open, \d+ in flight, \d+ new; last new connection (none yet|\d+\.\d s ago), byte (none yet|\d+\.\d s ago); (busy: new connections|settled, but bytes come|quiet|drained)$`)
	const names = "accepted cut drained in_flight last_byte_ago_ms last_new_ago_ms new observer open ports quiet refused schema settled time"
	for flags, session := range map[string]string{
		"":       "; 0 open, 0 in flight, / come / ; 1 open, 0 in flight, / ; quiet / leave / ; drained / INT / exits 0",
		"--json": `"open":0, / come / "open":1,"in_flight":0, / "quiet":true,"drained":false / leave / "drained":true / INT / exits 0`,
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			n := box.NewNetwork(t)
			server := n.Neighbor(t)
			w := startWatch(t, n, flags)
			client := (*box.Client)(nil)
			w.Acts = map[string]func(){
				"come":  func() { client = server.Dial("127.0.0.1"); client.Ask("hello") },
				"leave": func() { client.Close() },
			}
			w.Play(session)
			for _, view := range w.Out.Texts() {
				var object map[string]any
				if flags == "" && !plain.MatchString(view) {
					t.Errorf("unexpected form of a view: %q", view)
				} else if flags != "" && (json.Unmarshal([]byte(view), &object) != nil || object["observer"] != "sock_diag" ||
					strings.Join(slices.Sorted(maps.Keys(object)), " ") != names) {
					t.Errorf("%s, want an object with %s", view, names)
				}
			}
		})
	}
}

// TestWatchStop: watch counts what the end of a server costs, to the request, in the termination
// log too, and TERM does not end it. A TERM that follows at once is the same one.
func TestWatchStop(t *testing.T) {
	t.Parallel()
	box.Each(t, `
		case                 | grace | session                                                                            | verdicts | cut | refused | says
		dies                 | 30    | ask / stop / TERM / views / die / refuse / "refused":5 / log                       | 1        | 1   | 5       | 1 request in flight was cut, and 5 connections refused until +
		a client has left    | 30    | ask / leave / stop / die                                                           | 1        | 0   | 0       | TERM, then after
		returns              | 30    | close / refuse / "held_would_ms" / return / listens again, after / stop / die / refuse | 2    | 0   | 5       | TERM, then after
		serves on            | 4     | stop                                                                               | 1        | 0   | 0       | the server still serves after 3.
		a second TERM        | 30    | stop / views / TERM                                                                | 1        | 0   | 0       | the server still serves after
		INT                  | 30    | stop / INT                                                                         | 1        | 0   | 0       | the server still serves after
		INT after the end    | 30    | ask / stop / die / INT                                                             | 1        | 1   | 0       | TERM, then after
	`, func(t *testing.T, c box.Row) {
		n, path := box.NewNetwork(t), t.TempDir()+"/log"
		server := n.Neighbor(t)
		w := startWatch(t, n, "--json --grace-period="+c["grace"]+" --termination-log="+path)
		came, client := 0, (*box.Client)(nil)
		wantLog := func() {
			figures := fmt.Sprintf(`"cut":%s,"streams":0,"refused":%s,`, c["cut"], c["refused"])
			if log, _ := os.ReadFile(path); !strings.Contains(string(log), figures) {
				t.Errorf("termination log %q, want %s", log, figures)
			}
		}
		w.Acts = map[string]func(){
			"ask": func() {
				came++
				client = server.Dial("127.0.0.1")
				client.Ask("hello")
				fmt.Fprintln(client, "wait")
				w.Play(`"in_flight":1`)
			},
			"leave": func() { client.Close() },
			"stop":  func() { w.Play("TERM / following the stop") },
			"views": func() { w.Out.WaitNth(4, `"ports"`) }, // the next TERM is not the first one doubled
			"die":   func() { server.Play("KILL / exits") },
			"close": func() { server.Do("close") },
			"refuse": func() {
				for range 5 {
					if box.Accepts(n, server.Addr("127.0.0.1")) {
						t.Error("a client was served")
					}
				}
			},
			"return": func() { server.Do("listen 127.0.0.1:" + server.Port) }, // without TERM watch goes on
			"log":    wantLog,                                                 // is ahead of KILL
		}
		w.Play(`"ports":[` + server.Port + `] / ` + c["session"] + " / exits 0")
		wantLog()
		verdicts, last := 0, box.Report{}
		for _, line := range w.Out.Texts() {
			if strings.Contains(line, `"held_would_ms"`) {
				verdicts, last = verdicts+1, box.ParseReport(line)
			}
		}
		isAsWanted := last.Trigger == "TERM" && last.Accepted == came && strings.Contains(last.Message, c["says"])
		if strconv.Itoa(verdicts) != c["verdicts"] || !isAsWanted {
			t.Errorf("%d verdicts, the last %+v; want %s, %d accepted, and %q", verdicts, last, c["verdicts"], came, c["says"])
		}
	})
}

// TestWatchStreams: streams are open when the server has closed its port, and cut when they die with it, at
// once or later; those that it finishes are not. The streams do not send at one time: a moment after a byte,
// one that dies looks complete.
func TestWatchStreams(t *testing.T) {
	t.Parallel()
	box.Each(t, `
		case     | server | length | session                                              | cut | says
		die      | dies   | 9s     | server ends / exits 0                                | 6   | 6 streams were cut
		end      | serves | 2s     | server ends / exits 0                                | 0   | no request was cut
		killed   | serves | 30s    | "ports":[514] / server KILL / server ends / exits 0  | 6   | 6 streams were cut
		still on | serves | 30s    | "ports":[514] / INT / exits 0 / server KILL          | 0   | streams still open
	`, func(t *testing.T, c box.Row) {
		n := box.NewNetwork(t)
		server := box.Setup{Network: n, Outside: true}.Start(t, box.Helper("advised", c["server"])...)
		server.Play("ready")
		w := startWatch(t, n, "--json --grace-period=30")
		w.Play(`8080],"open":0`)
		clients := &crowd{network: n}
		for i := range 6 {
			clients.start(fmt.Sprintf("/stream?for=%s&after=%dms", c["length"], 17*i))
		}
		w.Acts = map[string]func(){
			"server TERM": func() { server.Signal(sig.TERM) },
			"server KILL": func() { server.Signal(sig.KILL) },
			"server ends": func() { server.WaitExit() },
		}
		w.Play(`"open":6 / TERM / following the stop / server TERM / ` + c["session"])
		lines := w.Out.Texts()
		last := lines[len(lines)-1]
		if !strings.Contains(last, c["says"]) || !strings.Contains(last, fmt.Sprintf(`"cut":0,"streams":%s,`, c["cut"])) {
			t.Errorf("%s; want %s cut, and %s", last, c["cut"], c["says"])
		}
		if clients.running.Wait(); c["case"] != "still on" && fmt.Sprint(clients.lost.Load()) != c["cut"] {
			t.Errorf("the clients lost %d", clients.lost.Load())
		}
	})
}

// TestWatchSidecar: a native sidecar, which gets TERM when the server has gone, says at once what
// was lost so far, prolongs the pod by --quiet-for even if clients are refused all the time, and ends
// without a further word if TERM comes after that.
func TestWatchSidecar(t *testing.T) {
	t.Parallel()
	box.Each(t, `
		case  | session                                                                                                  | last
		early | so far: the server's end: no request was cut, and  / TERM / following the stop / "grace_ms" / exits 0 | or later
		late  | so far: / "further_delay_ms":2000 / TERM / exits 0 / only                                       | "further_delay_ms":2000
	`, func(t *testing.T, c box.Row) {
		n := box.NewNetwork(t)
		server := n.Neighbor(t)
		w := startWatch(t, n, "--only-stops --json --grace-period=30")
		shorts(server, "127.0.0.1")
		server.Play("KILL / exits")
		refuse := func() { box.Accepts(n, server.Addr("127.0.0.1")) }
		end := func() {}
		if c["case"] == "early" {
			end = box.Repeat(20*time.Millisecond, refuse)
		} else {
			refuse()
		}
		w.Play(c["session"])
		end()
		lines := w.Out.Texts()
		last := lines[len(lines)-1]
		if !strings.Contains(last, c["last"]) || !strings.Contains(last, `"trigger":null`) {
			t.Errorf("said %q", lines)
		}
	})
}

// TestWatchNothing: watch finds a server that starts later, does not wait for a helper that listens
// on loopback with a port from the kernel, and shows no views with --only-stops.
func TestWatchNothing(t *testing.T) {
	t.Parallel()
	n := box.NewNetwork(t)
	w := startWatch(t, n, "--only-stops --grace-period=30")
	var server *box.Box
	w.Acts = map[string]func(){
		"serve": func() {
			server = n.Neighbor(t)
			n.Listen(t, "127.0.0.1:0")
			shorts(server, "127.0.0.1") // for longer than a second
		},
		"die": func() { server.Play("KILL") },
	}
	w.Play("nothing listens in this network namespace; looking on / serve / only / TERM / die / " +
		"the server's end: no request was cut, and no connection refused / exits 0")
}

// TestWatchHandler: watch says of a server that KILL will end it, if the server is PID 1 here and has no
// handler for TERM.
func TestWatchHandler(t *testing.T) {
	t.Parallel()
	for trap, said := range map[string]string{"": "once", "trap : TERM": "never"} {
		n := box.NewNetwork(t)
		file := testutil.Must(n.Listen(t, ":8080").(*net.TCPListener).File())
		s := box.Setup{Network: n, Change: func(cmd *exec.Cmd) { cmd.ExtraFiles = []*os.File{file} }}
		b := s.Start(t, "sh", "-c", trap+"\n\"$0\" watch >/dev/stderr & wait", box.Binary)
		b.Play("err ; drained / " + said + " the server is PID 1 and has no handler for TERM")
	}
}

// TestWatchReader: watch exits with 0 when its reader has closed the pipe; a reader that does
// not read does not delay HUP; a full disk is an error.
func TestWatchReader(t *testing.T) {
	box.Sessions(t, nil, `
	case  | line | session
	gone  | sh -c '(LAMEDUCK watch; echo code $? >&2) BAR head -n 1' | watch: / err code 0 / exits 0
	stuck | sh -c '(head -c 65536 /dev/zero; LAMEDUCK watch & echo $! >pid; wait $!; echo code $? >&2) BAR sleep 1000 & until cat /proc/$(cat pid)/task/*/wchan BAR grep poll_; do sleep 0.01; done; kill -HUP $(cat pid); wait' | err code 0
	full  | sh -c 'exec LAMEDUCK watch >/dev/full' | err cannot write to standard output: no space left / exits 125
	`)
}
