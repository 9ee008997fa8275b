package systems

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const consoleText = "KASLR disabled: CPU has no PRNG\r\n" +
	`{"schema":1,"message":"TERM: holding","trigger":"TERM","ended":null,"last_new_ms":null,"exit_code":null,"observer":null,"scope":null}` + "\r\n" +
	"{ not JSON\r\n" +
	`{"schema":1,"level":"warn","message":"without a report"}` + "\r\n" +
	`{"schema":1,"message":"TERM: held","trigger":"TERM","ended":"quiet","last_new_ms":2010,"exit_code":7,"observer":"sock_diag","scope":"descriptors"}` + "\r\n" +
	"[   29.136558] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000700\r\n" +
	"[   29.137346] CPU: 0 PID: 1 Comm: lameduck Not tainted\r\n"

func TestParseConsole(t *testing.T) {
	o := parseConsole(consoleText)
	if o.report.ExitCode == nil || *o.report.ExitCode != 7 || o.report.LastNew == nil || *o.report.LastNew != 2010 {
		t.Fatalf("%+v", o)
	}
	o.report.ExitCode, o.report.LastNew = nil, nil
	if want := (outcome{report: report{Ended: "quiet", Observer: "sock_diag", Scope: "descriptors"}, exit: 7, ended: true}); o != want {
		t.Errorf("got %+v, want %+v", o, want)
	}
	if o := parseConsole("nothing\n"); o.ended || o.report.ExitCode != nil {
		t.Errorf("from nothing: %+v", o)
	}
	for status, want := range map[uint32]int{0: 0, 0x700: 7, 0xff00: 255, 9: 137, 0x8b: 139} {
		if got := exitCode(status); got != want {
			t.Errorf("status %#x: got %d, want %d", status, got, want)
		}
	}
}

// goodRow is a row of a variant without a fault.
func goodRow(v *variant) *row {
	r := &row{kernel: &kernel{version: "6.1.0-50-s390x"}, variant: v, status: status{HUPs: 1}, sent: 209, took: 23400 * time.Millisecond}
	r.outcome = outcome{report: report{Ended: v.ended, Observer: v.observer, Scope: "descriptors", LastNew: new(int)}, exit: v.exit, ended: true}
	if v.inFlight {
		r.slow = answered
	}
	if v.loses {
		r.lost = 3
	}
	return r
}

// TestJudge: a good row of each variant is right, and with any fact broken wrong.
func TestJudge(t *testing.T) {
	breaks := map[string]func(r *row){
		"no end":      func(r *row) { r.outcome.ended = false },
		"exit code":   func(r *row) { r.outcome.exit++ },
		"HUP":         func(r *row) { r.status.HUPs = 0 },
		"orphans":     func(r *row) { r.status.Orphans = 1 },
		"reason":      func(r *row) { r.outcome.report.Ended = "ceiling" },
		"observer":    func(r *row) { r.outcome.report.Observer = "another" },
		"requests":    func(r *row) { r.lost = 1 - min(r.lost, 1) },
		"nothing new": func(r *row) { r.outcome.report.LastNew = nil },
		"in flight":   func(r *row) { r.slow = "EOF" },
	}
	for i := range variants {
		v := &variants[i]
		good := goodRow(v)
		good.judge()
		if len(good.wrong) > 0 {
			t.Errorf("%s: %q", v.name, good.wrong)
		}
		for name, spoil := range breaks {
			switch {
			case v.command != "serve" && name != "no end" && name != "exit code",
				name == "nothing new" && v.ended != "quiet",
				name == "in flight" && !v.inFlight:
				continue
			}
			r := goodRow(v)
			spoil(r)
			r.judge()
			if len(r.wrong) == 0 {
				t.Errorf("%s, %s broken: ok", v.name, name)
			}
		}
	}
}

func TestTable(t *testing.T) {
	wrong := goodRow(&variants[1])
	wrong.lost = 2
	wrong.judge()
	rows := []*row{
		goodRow(&variants[0]), wrong, goodRow(&variants[len(variants)-1]),
		{kernel: wrong.kernel, variant: &variants[1], skipped: "tcp_diag is part of this kernel"},
	}
	var out strings.Builder
	printTable(&out, rows)
	want := `
kernel          variant           HUP  orphans  hold ended  observer   scope        requests  lost  in flight  exit  time  verdict
6.1.0-50-s390x  complete          1    0        quiet       sock_diag  descriptors  209       0     answered   7     23s   ok
6.1.0-50-s390x  without tcp_diag  1    0        quiet       /proc/net  descriptors  209       2     -          7     23s   WRONG
6.1.0-50-s390x  unit tests        -    -        -           -          -            -         -     -          0     23s   ok
6.1.0-50-s390x  without tcp_diag  -    -        -           -          -            -         -     -          -     -     skipped: tcp_diag is part of this kernel
6.1.0-50-s390x, without tcp_diag: 2 of 209 requests lost
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got%swant%s", got, want)
	}
	if err := verdict(rows); fmt.Sprint(err) != "1 of 4 rows are wrong" {
		t.Error(err)
	}
	if err := verdict(rows[:1]); err != nil {
		t.Error(err)
	}
}

func TestTail(t *testing.T) {
	if got, want := tail("a\r\nb\r\nc\r\n", 2), "    … 1 lines before\n    b\n    c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
