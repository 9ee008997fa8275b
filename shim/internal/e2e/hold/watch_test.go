package hold_test

import (
	"encoding/json"
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
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestWatch: a view is one line at all times, plain or a JSON object with the same names, and
// text from outside forges none. Silence counts from the last byte that the kernel knows of, so
// an idle server is quiet in the first view. TERM, INT and HUP end watch.
func TestWatch(t *testing.T) {
	plain := regexp.MustCompile(`^\d\d:\d\d:\d\d ports .*; \d+ open, \d+ in flight, \d+ new; last new connection (none yet|\d+\.\d s ago), byte (none yet|\d+\.\d s ago); peers (none|127.0.0.1 \(1\)); (busy: new connections|settled, but bytes come|quiet|drained)$`)
	const names = "schema time observer scope ports udp unix open in_flight new accepted last_new_ago_ms last_byte_ago_ms settled quiet drained peers probes"
	for flags, texts := range map[string][4]string{
		"--quiet-for=1": {"; 0 open, 0 in flight, ", "; 1 open, 0 in flight, ", "; quiet", "; drained"},
		"--quiet-for=1 --json": {`"open":0,`, `"peers":[{"peer":"127.0.0.1","open":1}]`, `"quiet":true,"drained":false`,
			`"drained":true`},
	} {
		t.Run(flags, func(t *testing.T) {
			dir := testutil.Must(os.MkdirTemp("", "f")) // short enough for sun_path of unix(7)
			t.Cleanup(func() { os.RemoveAll(dir) })
			path := dir + "/\x1b[2J\u009b2J\nlameduck: forged \xff"
			h := startHost(t, box.Setup{}, nil, "127.0.0.1:0", "unix:"+path, "unix:@"+path)
			h.hook("$L watch " + flags)
			h.Out.Wait(texts[0])
			c := h.Dial("127.0.0.1")
			c.Ask("hello")
			for _, text := range texts[1:3] {
				h.Out.Wait(text)
			}
			c.Close()
			h.Out.WaitNth(2, texts[3])
			h.signal(map[bool]string{true: "TERM", false: "INT"}[strings.Contains(flags, "json")])
			h.Out.Wait("hook: exited 0")
			h.Send("exit 0")
			h.WantExit(0)
			for _, view := range h.Out.Texts() {
				view, isView := strings.CutPrefix(view, "hook: ")
				if !isView || view == "exited 0" {
					continue
				}
				if box.Forged(view) {
					t.Errorf("forged view %q", view)
				}
				if !strings.Contains(flags, "json") {
					if !plain.MatchString(view) {
						t.Errorf("unexpected form of a view: %q", view)
					}
					continue
				}
				var last shim.View
				if err := json.Unmarshal([]byte(view), &last); err != nil || last.Schema != 1 || *last.Observer != "sock_diag" ||
					len(last.Unix) != 2 {
					t.Errorf("%s: %v", view, err)
				}
				var got []string
				for _, m := range regexp.MustCompile(`"([a-z_]+)":`).FindAllStringSubmatch(regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(view, ""), -1) {
					got = append(got, m[1])
				}
				if !slices.Equal(got, strings.Fields(names)) {
					t.Errorf("names in the view: %v, want %v", got, names)
				}
			}
		})
	}
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
