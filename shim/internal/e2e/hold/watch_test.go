package hold_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim"
	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestWatch: a view is one line at all times, plain or a JSON object with the same names.
// Silence counts from the last byte that the kernel knows of, so an idle server is quiet in the
// first view. Without a stop INT ends watch in silence.
func TestWatch(t *testing.T) {
	plain := regexp.MustCompile(`^\d\d:\d\d:\d\d ports \d+; \d+ open, \d+ in flight, \d+ new; last new connection (none yet|\d+\.\d s ago), byte (none yet|\d+\.\d s ago); (busy: new connections|settled, but bytes come|quiet|drained)$`)
	const names = "schema time observer ports open in_flight new accepted last_new_ago_ms last_byte_ago_ms settled quiet drained cut refused"
	for flags, texts := range map[string][4]string{
		"--quiet-for=1":        {"; 0 open, 0 in flight, ", "; 1 open, 0 in flight, ", "; quiet", "; drained"},
		"--quiet-for=1 --json": {`"open":0,`, `"open":1,"in_flight":0,`, `"quiet":true,"drained":false`, `"drained":true`},
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			n := box.NewNetwork(t)
			server := n.Neighbor(t)
			w := box.Setup{Network: n, Outside: true}.Boot(t, "watch "+flags)
			w.Out.Wait(texts[0])
			c := server.Dial("127.0.0.1")
			c.Ask("hello")
			for _, text := range texts[1:3] {
				w.Out.Wait(text)
			}
			c.Close()
			w.Out.WaitNth(2, texts[3])
			w.Signal(sig.INT)
			w.WantExit(0)
			for _, view := range w.Out.Texts() {
				if !strings.Contains(flags, "json") {
					if !plain.MatchString(view) {
						t.Errorf("unexpected form of a view: %q", view)
					}
					continue
				}
				var last shim.View
				if err := json.Unmarshal([]byte(view), &last); err != nil || last.Schema != 1 || *last.Observer != "sock_diag" {
					t.Errorf("%s: %v", view, err)
				}
				var got []string
				for _, m := range regexp.MustCompile(`"([a-z_]+)":`).FindAllStringSubmatch(view, -1) {
					got = append(got, m[1])
				}
				if !slices.Equal(got, strings.Fields(names)) {
					t.Errorf("names in the view: %v, want %v", got, names)
				}
			}
		})
	}
}

// watched is a server in another container, and watch beside it.
type watched struct {
	*testing.T
	server, watch *box.Box
	log           string // the termination log
	network       *box.Network
}

// startWatched starts a server, and watch with a silence of a second and a grace period.
func startWatched(t *testing.T, flags string) *watched {
	t.Parallel()
	n := box.NewNetwork(t)
	w := &watched{T: t, network: n, server: n.Neighbor(t), log: t.TempDir() + "/log"}
	w.watch = box.Setup{Network: n, Outside: true}.Boot(t, "watch --json --quiet-for=1 --termination-log="+w.log+" "+flags)
	w.watch.Out.Wait(`"ports":[` + w.server.Port + `]`) // the first view
	return w
}

// ask opens a connection, and has a request in flight on it.
func (w *watched) ask() *box.Client {
	c := w.server.Dial("127.0.0.1")
	c.Ask("hello")
	fmt.Fprintln(c, "wait")
	w.watch.Out.Wait(`"in_flight":1`)
	return c
}

// refuse has so many clients refused.
func (w *watched) refuse(times int) {
	w.Helper()
	for range times {
		if conn, err := w.network.Connect(nil, w.server.Addr("127.0.0.1")); err == nil {
			conn.Close()
			w.Fatal("a client was served")
		}
	}
}

// die kills the server.
func (w *watched) die() {
	w.server.Cmd.Process.Kill()
	w.server.WaitExit()
}

// verdict is what watch says of a stop.
type verdict struct {
	Trigger       *string
	Cut, Refused  *int
	ServerEndedMS *int64 `json:"server_ended_ms"`
	Message       string
}

// want wants a last verdict, in the termination log too.
func (w *watched) want(trigger string, cut, refused int, words string) {
	w.Helper()
	var v verdict
	for _, text := range w.watch.Out.Texts() {
		if strings.Contains(text, `"held_would_ms"`) {
			json.Unmarshal([]byte(text), &v)
		}
	}
	got := ""
	if v.Trigger != nil {
		got = *v.Trigger
	}
	if v.Cut == nil || v.Refused == nil || *v.Cut != cut || *v.Refused != refused || got != trigger || !strings.Contains(v.Message, words) {
		w.Errorf("%+v, want trigger %q, %d cut, %d refused, and %q in:\n%s", v, trigger, cut, refused, words,
			strings.Join(w.watch.Out.Texts(), "\n"))
	}
	if log := string(testutil.Must(os.ReadFile(w.log))); !strings.Contains(log, fmt.Sprintf(`"cut":%d,"streams":0,"refused":%d,`, cut, refused)) {
		w.Errorf("termination log: %q", log)
	}
}

// TestWatchStop: watch counts what the end of a server costs, to the request, and TERM does not
// end it.
func TestWatchStop(t *testing.T) {
	const refused = 5
	t.Run("dies", func(t *testing.T) {
		w := startWatched(t, "--grace-period=30")
		idle := w.server.Dial("127.0.0.1")
		idle.Ask("hello")
		w.ask()
		w.watch.Signal(sig.TERM)
		w.watch.Out.Wait("following the stop")
		w.watch.Signal(sig.TERM) // the same one
		w.die()
		w.refuse(refused)
		w.watch.WantExit(0)
		w.want("TERM", 1, refused, "1 request in flight was cut, and 5 connections refused until +")
	})
	t.Run("returns", func(t *testing.T) {
		w := startWatched(t, "--grace-period=30")
		w.server.Do("close")
		w.refuse(3)
		w.watch.Out.Wait(`"held_would_ms"`) // without TERM it goes on
		w.server.Do("listen 127.0.0.1:" + w.server.Port)
		w.watch.Out.Wait("port " + w.server.Port + " listens again, after ")
		w.watch.Signal(sig.TERM)
		w.die()
		w.refuse(refused)
		w.watch.WantExit(0)
		w.want("TERM", 0, refused, "TERM, then after ")
		if n := strings.Count(strings.Join(w.watch.Out.Texts(), "\n"), `"held_would_ms"`); n != 2 {
			t.Errorf("%d verdicts, want one for each end", n)
		}
	})
	t.Run("killed", func(t *testing.T) {
		w := startWatched(t, "--grace-period=30")
		w.ask()
		w.watch.Signal(sig.TERM)
		w.die()
		w.refuse(refused)
		w.watch.Out.Wait(`"refused":5`)
		w.watch.Cmd.Process.Kill()
		w.watch.WaitExit()
		log := string(testutil.Must(os.ReadFile(w.log)))
		if !strings.Contains(log, `"cut":1,"streams":0,"refused":5,`) {
			t.Errorf("termination log: %q", log)
		}
	})
	t.Run("the grace period ends", func(t *testing.T) {
		w := startWatched(t, "--grace-period=4")
		w.watch.Signal(sig.TERM)
		start := time.Now()
		w.watch.WantExit(0)
		if took := time.Since(start); took < 3*time.Second-early || took > 4*time.Second {
			t.Errorf("it took %v of 4 s", took)
		}
		w.want("TERM", 0, 0, "the server still serves after 3.")
	})
	for name, signal := range map[string]sig.Signal{"INT": sig.INT, "a second TERM": sig.TERM} {
		t.Run(name, func(t *testing.T) {
			w := startWatched(t, "--grace-period=30")
			w.watch.Signal(sig.TERM)
			w.watch.Out.Wait("following the stop")
			if signal == sig.TERM {
				w.watch.Out.WaitNth(4, `"ports"`) // the second TERM is not the first one doubled
			}
			w.watch.Signal(signal)
			w.watch.WantExit(0)
			w.want("TERM", 0, 0, "the server still serves after ")
		})
	}
	t.Run("INT right after the server's end", func(t *testing.T) {
		w := startWatched(t, "--grace-period=30")
		w.ask()
		w.watch.Signal(sig.TERM)
		w.watch.Out.Wait("following the stop")
		w.die()
		w.watch.Signal(sig.INT)
		w.watch.WantExit(0)
		w.want("TERM", 1, 0, "TERM, then after ")
	})
	t.Run("only stops", func(t *testing.T) {
		t.Parallel()
		n := box.NewNetwork(t)
		w := box.Setup{Network: n, Outside: true}.Boot(t, "watch --only-stops --grace-period=30")
		w.Out.Wait("nothing listens")
		shorts(n.Neighbor(t), "127.0.0.1") // for longer than a second
		w.Signal(sig.INT)
		w.WantExit(0)
		w.Out.Want("lameduck: watch: nothing listens in this network namespace; looking on")
	})
	t.Run("nothing listens", func(t *testing.T) {
		t.Parallel()
		n := box.NewNetwork(t)
		w := box.Setup{Network: n, Outside: true}.Boot(t, "watch --quiet-for=1 --grace-period=30")
		w.Out.Wait("lameduck: watch: nothing listens in this network namespace; looking on")
		server := n.Neighbor(t) // found at once
		w.Out.Wait("ports " + server.Port + ";")
		helper := n.Listen(t) // on loopback, with a port from the kernel
		w.Out.WaitNth(3, "ports "+server.Port+";")
		w.Signal(sig.TERM)
		server.Cmd.Process.Kill()
		w.WantExit(0) // and does not wait for the helper
		helper.Close()
		w.Out.Wait("the server's end: no request was cut, and no connection refused")
	})
}

// TestWatchReader: watch exits with 0 when its reader has closed the pipe; a reader that does
// not read does not delay HUP; a full disk is an error.
func TestWatchReader(t *testing.T) {
	gone := box.Setup{Outside: true}.Boot(t, "watch --json")
	gone.Out.Wait("schema")
	gone.CloseOutput()
	gone.WantExit(0)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stuck := exec.Command(box.Binary, "watch", "--json")
	stuck.Stdout = w
	testutil.Must(0, stuck.Start())
	testutil.Must(r.Read(make([]byte, 4096))) // the first view
	box.FillPipe(t, w)
	time.Sleep(1100 * time.Millisecond) // a view is due every second, and the pipe has no room
	stuck.Process.Signal(syscall.SIGHUP)
	timer := time.AfterFunc(testutil.Patience, func() { stuck.Process.Kill() })
	if err := stuck.Wait(); err != nil || !timer.Stop() {
		t.Error(err)
	}
	full := box.Setup{Outside: true}.Start(t, "/bin/sh", "-c", `exec "$0" watch >/dev/full`, box.Binary)
	full.WantExit(125)
	full.WantOneLine("cannot write to standard output: no space left")
}
