package stop_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestReport: every line of a stop is a JSON object, and the last line has all values. At
// each stage the termination log has the report so far, after the command's own text. The line
// before the end of the grace period counts the requests in flight at that time.
func TestReport(t *testing.T) {
	t.Parallel()
	log := t.TempDir() + "/log"
	testutil.WriteFile(t, log, "the command's\n")
	logged := func(text string) {
		t.Helper()
		testutil.Eventually(t, "the termination log has "+text, func() bool {
			lines := box.ReadLines(log)
			return len(lines) == 2 && lines[0] == "the command's" && json.Valid([]byte(lines[1])) && strings.Contains(lines[1], text)
		})
	}
	b := box.Setup{Network: box.NewNetwork(t)}.Catch(t,
		"--delay=2 --grace-period=5 --log-level=debug --termination-log="+log, "[::]:0")
	b.Play("TERM / err sample busy") // later connections are new
	logged(`"trigger":"TERM","held_ms":0,"ended":null`)
	b.ShortConn("127.0.0.1")
	kept := b.Dial("::1")
	kept.Ask("hello")
	b.Play("got TERM")
	logged(`"sent":[{"signal":"TERM"`)
	fmt.Fprintln(kept, "wait")
	b.Play("err still runs")
	logged(", 1 in flight")
	b.Exit()
	logged(`"exit_code":7`)
	for _, line := range b.Err.All() {
		if r := box.ParseReport(line.Text); r.Schema != 1 || r.Level == "" || r.Message == "" {
			t.Errorf("line %s", line)
		}
	}
	r := b.Report()
	if r.HeldMS < 2000 || r.FloorMS != 2000 || r.CeilingMS != 2000 || r.Accepted != 2 || r.Open != 1 || r.InFlight != 0 ||
		r.Observer != "sock_diag" || r.Scope == "" || r.LastNewMS < 0 || r.LastByteMS < 0 || r.Sent[0].AtMS < 2000 ||
		r.GraceUsedMS < r.HeldMS || r.GraceAssumed {
		t.Errorf("the report is %+v", r)
	}
}

// TestTerminationLogFails: if the command fails by itself, lameduck restores the file. When
// the file can no longer be written, lameduck warns once, and the stop goes on.
func TestTerminationLogFails(t *testing.T) {
	box.Sessions(t, nil, `
	case | line | session
	restored | sh -c 'printf boom >log; "$@"; echo $? $(cat log)' sh LAMEDUCK -d 10 --grace-period=30 --termination-log=DIR/log CATCH | ready / > inside TERM / err holding / > run until grep holding log; do sleep 0.01; done / exit status 0 / > killed KILL / 137 boom / exits 0
	gone | LAMEDUCK -d 0.5 --termination-log=DIR/log CATCH | ready / > run rm -r DIR / exit status 0 / TERM / got TERM / > exit 7 / exits 7 / ended elapsed
		/ warns cannot write the termination log: no such file or directory
	`)
}
