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

// Tests of a hold of a fixed length, during which the traffic is sampled for the report.

// startDelayed starts a server under lameduck with flags for a fixed delay.
func startDelayed(t *testing.T, flags ...string) *serverBox {
	t.Helper()
	t.Parallel()
	return startDelayedNow(t, flags...)
}

func startDelayedNow(t *testing.T, flags ...string) *serverBox {
	t.Helper()
	s := &serverBox{box: boot(t, nil, append(append(flags, "--"), helperCommand("serve")...)...)}
	s.out.wait(t, "ready")
	s.port = strings.Fields(s.out.all()[0].text)[1]
	return s
}

// finalReport waits for the end of the stop, and returns the last line on standard error.
func (s *serverBox) finalReport() string {
	s.t.Helper()
	s.out.wait(s.t, "got TERM")
	s.sendLine("exit 0")
	s.wantExit(0)
	return s.report()
}

// wantMatch fails unless a line matches the regular expression want.
func wantMatch(t *testing.T, line, want string) {
	t.Helper()
	if !regexp.MustCompile(want).MatchString(line) {
		t.Errorf("line\n%s\nwant\n%s", line, want)
	}
}

// waitFirstSample waits for the first sample of the traffic. Later connections are new.
func (s *serverBox) waitFirstSample() { s.err.wait(s.t, "sample busy") }

// TestElapsedLonger: the report suggests a shorter delay.
func TestElapsedLonger(t *testing.T) {
	s := startDelayed(t, "--delay=6", "--grace-period=30", "--log-level=debug", "--log-format=json")
	s.signal(sig.TERM)
	s.waitFirstSample()
	for range 3 {
		s.shortConn("127.0.0.1")
	}
	line := s.finalReport()
	r := parseReport(t, line)
	wantMatch(t, r.Message, `^TERM: nothing in flight: held 6\.\d s \(elapsed\), sent TERM( at \+6\.\d s)?, exited 0 at \+6\.\d s of 30 s; `+
		`3 new connections [▁▂▃▄▅▆▇█]+, the last at \+[0-2]\.\d s; `+
		`suggestion: last new connection, probes aside, at \+[0-2]\.\d s: a fixed delay needs [2-4] s$`)
	if r.Suggestion == nil || !strings.HasSuffix(r.Message, "; suggestion: "+*r.Suggestion) {
		t.Fatalf("report: %s\nwant a suggestion", line)
	}
	if *r.LastByteMS >= 3000 || *r.Open != 0 || *r.Observer != "sock_diag" || *r.Scope == "" || r.GraceUsedMS < 6000 || r.GraceUsedMS >= 7000 {
		t.Errorf("report: %s\nwant the last byte before +3 s, 0 open, sock_diag, a scope, and 6 s of the grace period", line)
	}
}

// TestElapsedTooShort: the report says that the delay is too short, by the last sample,
// just before the signal is sent.
func TestElapsedTooShort(t *testing.T) {
	t.Parallel()
	detail := regexp.MustCompile(`; 1 new connection [▁█]+, the last at \+(1\.[89]|2\.0) s; `)
	line := ""
	for range 5 { // a busy machine may delay the last sample, or the test
		s := startDelayedNow(t, "--delay=2", "--grace-period=30", "--log-format=json")
		start := time.Now()
		s.signal(sig.TERM)
		time.Sleep(time.Until(start.Add(1850 * time.Millisecond))) // after the last regular sample, at 1.75 s
		s.dial("127.0.0.1").ask("hello")
		line = s.finalReport()
		r := parseReport(t, line)
		tooShort := r.Suggestion != nil && strings.Contains(*r.Suggestion, ": 2 s is too short, see --until=quiet")
		if tooShort && *r.Open == 1 && r.InFlight != nil && detail.MatchString(r.Message) {
			return
		}
	}
	t.Errorf("line\n%s\nwant 1 open connection, a suggestion, and the detail\n%v", line, detail)
}

// TestElapsedPorts: --ignore-peer and --count-port apply to a fixed delay too.
func TestElapsedPorts(t *testing.T) {
	for flag, want := range map[string]string{"--ignore-peer=127.0.0.0/8": "; 0 new connections$", "--count-port=1": "; 0 new connections$", "": "; 1 new connection █"} {
		t.Run(flag, func(t *testing.T) {
			flags := []string{"--delay=1.5", "--grace-period=30", "--log-level=debug"}
			if flag != "" {
				flags = append(flags, flag)
			}
			s := startDelayed(t, flags...)
			s.signal(sig.TERM)
			s.waitFirstSample()
			s.shortConn("127.0.0.1")
			wantMatch(t, s.finalReport(), "TERM: nothing in flight: .*"+want)
		})
	}
}

// TestElapsedOvertime: the line before the end of the grace period counts the requests in
// flight at that time.
func TestElapsedOvertime(t *testing.T) {
	s := startDelayed(t, "--delay=1", "--grace-period=4")
	c := s.dial("127.0.0.1")
	c.ask("hello")
	s.signal(sig.TERM)
	s.out.wait(t, "got TERM")
	fmt.Fprintln(c, "slow") // four seconds
	wantMatch(t, s.err.wait(t, "still runs").text, `^lameduck: TERM: the command still runs at \+3\.\d s of 4 s, 1 in flight: held 1\.0 s \(elapsed\), sent TERM$`)
	s.sendLine("exit 0")
	s.wantExit(0)
}

// TestElapsedJSON: every line of a stop is a JSON object, and the last line has all values.
func TestElapsedJSON(t *testing.T) {
	s := startDelayed(t, "--delay=2", "--grace-period=30", "--log-format=json", "--log-level=debug")
	s.signal(sig.TERM)
	s.waitFirstSample()
	s.shortConn("127.0.0.1")
	s.finalReport()
	var last jsonReport
	for _, line := range s.err.all() {
		last = parseReport(t, line.text)
	}
	for name, ok := range map[string]bool{
		"trigger":     last.Trigger == "TERM",
		"hold":        *last.Ended == "elapsed" && last.HeldMS >= 2000 && last.FloorMS == 2000 && last.CeilingMS == 2000 && last.ProlongedBy == nil,
		"connections": *last.Accepted == 1 && *last.Open == 0 && *last.InFlight == 0 && *last.Observer == "sock_diag",
		"times":       *last.LastNewMS <= 1500 && last.LastByteMS != nil,
		"sent":        len(last.Sent) == 1 && last.Sent[0].Signal == "TERM" && last.Sent[0].AtMS >= 2000,
		"exit":        *last.ExitCode == 0 && last.ExitSignal == nil && last.GraceUsedMS >= last.HeldMS && !last.GraceAssumed,
	} {
		if !ok {
			t.Errorf("%s: the report is %s", name, testutil.Must(json.Marshal(last)))
		}
	}
}

// parseReport parses a line with --log-format=json.
func parseReport(t *testing.T, line string) (r jsonReport) {
	t.Helper()
	levels := []string{"error", "warn", "info", "debug"}
	err := json.Unmarshal([]byte(line), &r)
	if err != nil || r.Schema != 1 || r.Message == "" || !slices.Contains(levels, r.Level) {
		t.Errorf("%s: %v", line, err)
	}
	return r
}

// jsonReport is a line with --log-format=json. docs/production.md has the names.
type jsonReport struct {
	Schema  int    `json:"schema"`
	Level   string `json:"level"`
	Message string `json:"message"`
	Trigger string `json:"trigger"`
	jsonHold
	jsonTraffic
	jsonSource
	jsonEnd
}

// jsonHold is the part of a jsonReport about the hold.
type jsonHold struct {
	HeldMS    int64   `json:"held_ms"`
	Ended     *string `json:"ended"`
	FloorMS   int64   `json:"floor_ms"`
	CeilingMS int64   `json:"ceiling_ms"`
}

// jsonTraffic is the part of a jsonReport about connections.
type jsonTraffic struct {
	Accepted   *int   `json:"accepted"`
	LastNewMS  *int64 `json:"last_new_ms"`
	LastByteMS *int64 `json:"last_byte_ms"`
	Open       *int   `json:"open"`
	InFlight   *int   `json:"in_flight"`
	LeftOut    *struct {
		GivenUp int `json:"given_up"`
	} `json:"left_out"`
	NewPorts []uint16 `json:"new_ports"`
}

// jsonSource is the part of a jsonReport about how lameduck has observed the traffic, and
// what follows from the samples.
type jsonSource struct {
	Observer    *string `json:"observer"`
	Scope       *string `json:"scope"`
	ProlongedBy *string `json:"prolonged_by"`
	Suggestion  *string `json:"suggestion"`
}

// jsonEnd is the part of a jsonReport about the command's end.
type jsonEnd struct {
	Sent []struct {
		Signal string `json:"signal"`
		AtMS   int64  `json:"at_ms"`
	} `json:"sent"`
	ExitCode     *int    `json:"exit_code"`
	ExitSignal   *string `json:"exit_signal"`
	GraceUsedMS  int64   `json:"grace_used_ms"`
	GraceAssumed bool    `json:"grace_assumed"`
}

// TestErrorsJSON: --log-format applies to start errors.
func TestErrorsJSON(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--log-format=json", "/no/such/program"}, {"--log-format=json"}, {"--log-format=json", "--delay=x", "true"},
		{"--log-format=json", "--delay=50", "--grace-period=30", "true"}, {"--log-format=json", "--termination-log=/proc", "true"},
	} {
		b := boot(t, []string{"LAMEDUCK_" + strings.Repeat("X", 20_000) + "=1"}, args...)
		b.waitExit()
		stderr := b.err.all()
		for _, line := range stderr {
			if !json.Valid([]byte(line.text)) {
				t.Errorf("%q: %.200s", args, line)
			}
		}
		if n := len(stderr); n == 0 || !strings.Contains(stderr[n-1].text, `"level":"error"`) {
			t.Errorf("%q: stderr %.200v, want an error as the last line", args, stderr)
		}
	}
}

// TestReportShell: the report names a shell that does not pass the signal on.
func TestReportShell(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, "--delay=1", "--grace-period=30", "--", "sh", "-c", "echo ready; sleep 1000; true")
	b.out.wait(t, "ready")
	b.child()
	b.signal(sig.TERM)
	b.wantExit(143)
	wantMatch(t, b.report(), `; suggestion: the command is a shell that does not pass TERM on: exec the program, or give --group \(LAMEDUCK_GROUP\)$`)
}
