package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// A hold of a fixed length looks at the traffic too, for the report alone.

// delaying is a server under lameduck with a fixed delay.
func delaying(t *testing.T, flags ...string) *serverBox {
	t.Helper()
	t.Parallel()
	return delayingNow(t, flags...)
}

func delayingNow(t *testing.T, flags ...string) *serverBox {
	t.Helper()
	s := &serverBox{box: boot(t, nil, append(append(flags, "--"), helperCommand("serve")...)...)}
	s.out.wait(t, "ready")
	s.port = strings.Fields(s.out.all()[0].text)[1]
	return s
}

// finalReport waits for the end, and is the last line.
func (s *serverBox) finalReport() string {
	s.t.Helper()
	s.out.wait(s.t, "got TERM")
	s.sendLine("exit 0")
	s.wantExit(0)
	said := s.err.all()
	return said[len(said)-1].text
}

// wantLine wants a line to be so.
func wantLine(t *testing.T, line, want string) {
	t.Helper()
	if !regexp.MustCompile(want).MatchString(line) {
		t.Errorf("it says\n%s\nwant\n%s", line, want)
	}
}

// settles waits until the watcher has looked: what came before it did is not new.
func (s *serverBox) settles() { s.err.wait(s.t, "look busy") }

// TestElapsedLonger: the report says what delay would do.
func TestElapsedLonger(t *testing.T) {
	s := delaying(t, "--delay=6", "--grace-period=30", "--log-level=debug")
	s.signal(sig.TERM)
	s.settles()
	for range 3 {
		s.shortConn("127.0.0.1")
	}
	wantLine(t, s.finalReport(), `^lameduck: TERM: held 6\.\d s \(elapsed\); 3 new connections [▁▂▃▄▅▆▇█]+, the last at \+[0-2]\.\d s, the last byte at \+[0-2]\.\d s; `+
		`0 open at the end; seen by sock_diag, [^;]*; sent TERM at \+6\.\d s; the command exited 0 at \+6\.\d s; 6\.\d s of the 30 s grace period used; `+
		`last new connection at \+[0-2]\.\d s: a fixed delay needs [2-4] s$`)
}

// TestElapsedTooShort: and that it is too short, as it finds at its last look, just
// before the signal is sent.
func TestElapsedTooShort(t *testing.T) {
	t.Parallel()
	want := regexp.MustCompile(`1 new connection [▁█]+, the last at \+(1\.[89]|2\.0) s, .*; 1 open at the end, \d in flight; .*: 2 s is too short; see --until=quiet$`)
	line := ""
	for range 5 { // the machine may be too busy for the last look, or for us
		s := delayingNow(t, "--delay=2", "--grace-period=30")
		start := time.Now()
		s.signal(sig.TERM)
		time.Sleep(time.Until(start.Add(1850 * time.Millisecond))) // the last regular look is at 1.75 s
		s.dial("127.0.0.1").ask("hello")
		if line = s.finalReport(); want.MatchString(line) {
			return
		}
	}
	t.Errorf("it says\n%s\nwant\n%v", line, want)
}

// TestElapsedPorts: what counts is heard with a fixed delay too.
func TestElapsedPorts(t *testing.T) {
	for flag, want := range map[string]string{"--ignore-peer=127.0.0.0/8": "; 0 new connections; 0 open", "--count-port=1": "; 0 new connections; 0 open", "": "; 1 new connection █"} {
		t.Run(flag, func(t *testing.T) {
			flags := []string{"--delay=1.5", "--grace-period=30", "--log-level=debug"}
			if flag != "" {
				flags = append(flags, flag)
			}
			s := delaying(t, flags...)
			s.signal(sig.TERM)
			s.settles()
			s.shortConn("127.0.0.1")
			wantLine(t, s.finalReport(), want)
		})
	}
}

// TestElapsedOvertime: the line at the end of the grace period names what is in
// flight then.
func TestElapsedOvertime(t *testing.T) {
	s := delaying(t, "--delay=1", "--grace-period=4")
	c := s.dial("127.0.0.1")
	c.ask("hello")
	s.signal(sig.TERM)
	s.out.wait(t, "got TERM")
	fmt.Fprintln(c, "slow") // four seconds
	wantLine(t, s.err.wait(t, "still runs").text, `^lameduck: TERM: held 1\.0 s \(elapsed\); sent TERM at \+1\.0 s; the command still runs at \+3\.\d s of the 4 s grace period, 1 in flight$`)
	s.sendLine("exit 0")
	s.wantExit(0)
}

// TestElapsedJSON: every line of a stop is an object, and the last has it all.
func TestElapsedJSON(t *testing.T) {
	s := delaying(t, "--delay=2", "--grace-period=30", "--log-format=json", "--log-level=debug")
	s.signal(sig.TERM)
	s.settles()
	s.shortConn("127.0.0.1")
	s.finalReport()
	var last jsonReport
	for _, line := range s.err.all() {
		last = jsonReport{}
		if err := json.Unmarshal([]byte(line.text), &last); err != nil || last.Schema != 1 || last.Message == "" || !slices.Contains([]string{"error", "warn", "info", "debug"}, last.Level) {
			t.Errorf("%s: %v", line.text, err)
		}
	}
	f := &last
	if f.Trigger != "TERM" || *f.Ended != "elapsed" || f.HeldMS < 2000 || f.FloorMS != 2000 || f.CeilingMS != 2000 || *f.Accepted != 1 || *f.LastNewMS > 1500 ||
		f.LastByteMS == nil || *f.Open != 0 || *f.InFlight != 0 || len(f.Sent) != 1 || f.Sent[0].Signal != "TERM" || f.Sent[0].AtMS < 2000 || *f.ExitCode != 0 ||
		f.ExitSignal != nil || f.GraceUsedMS < f.HeldMS || f.GraceAssumed || *f.Observer != "sock_diag" || f.ProlongedBy != nil {
		t.Errorf("the report is %s", testutil.Must(json.Marshal(f)))
	}
}

// jsonReport is a line with --log-format=json, as docs/report.md has the names.
type jsonReport struct {
	Schema     int     `json:"schema"`
	Level      string  `json:"level"`
	Message    string  `json:"message"`
	Trigger    string  `json:"trigger"`
	HeldMS     int64   `json:"held_ms"`
	Ended      *string `json:"ended"`
	FloorMS    int64   `json:"floor_ms"`
	CeilingMS  int64   `json:"ceiling_ms"`
	Accepted   *int    `json:"accepted"`
	LastNewMS  *int64  `json:"last_new_ms"`
	LastByteMS *int64  `json:"last_byte_ms"`
	Open       *int    `json:"open"`
	InFlight   *int    `json:"in_flight"`
	Sent       []struct {
		Signal string `json:"signal"`
		AtMS   int64  `json:"at_ms"`
	} `json:"sent"`
	ExitCode     *int    `json:"exit_code"`
	ExitSignal   *string `json:"exit_signal"`
	GraceUsedMS  int64   `json:"grace_used_ms"`
	GraceAssumed bool    `json:"grace_assumed"`
	Observer     *string `json:"observer"`
	ProlongedBy  *string `json:"prolonged_by"`
}

// TestErrorsJSON: what keeps lameduck from starting is said in the form asked for.
func TestErrorsJSON(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--log-format=json", "/no/such/program"}, {"--log-format=json"}, {"--log-format=json", "--delay=x", "true"},
		{"--log-format=json", "--delay=50", "--grace-period=30", "true"}, {"--log-format=json", "--termination-log=/proc", "true"},
	} {
		b := boot(t, []string{"LAMEDUCK_" + strings.Repeat("X", 20_000) + "=1"}, args...)
		b.waitExit()
		said := b.err.all()
		for _, line := range said {
			if !json.Valid([]byte(line.text)) {
				t.Errorf("%q: %.200s", args, line)
			}
		}
		if len(said) == 0 || !strings.Contains(said[len(said)-1].text, `"level":"error"`) {
			t.Errorf("%q: it says %.200v", args, said)
		}
	}
}

// TestReportDeaf: a shell that keeps the signal to itself is named, at the latest
// when the grace period is about to end.
func TestReportDeaf(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, "--delay=1", "--grace-period=30", "--", "sh", "-c", "echo ready; sleep 1000; true")
	b.out.wait(t, "ready")
	b.child()
	b.signal(sig.TERM)
	b.wantExit(143)
	said := b.err.all()
	wantLine(t, said[len(said)-1].text, `; the command is a shell that does not pass TERM on: exec, or --group$`)
}
