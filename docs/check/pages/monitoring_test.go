package pages

import (
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// loki is a program for TestMonitoring; without it only names are checked.
var loki = flag.String("loki", "", "check docs/examples/monitoring by this build of docs/check/loki")

// TestMonitoring: the rules and the dashboard have names of reports, and the parsers of Loki,
// Prometheus and Grafana take them. No query fails at a line of the logs that the pages query, and each
// alert finds one, but for the server that hangs: there is none.
func TestMonitoring(t *testing.T) {
	folder := filepath.Join(root, "docs/examples/monitoring")
	for _, name := range []string{"loki.yaml", "dashboard.json"} {
		query(t, strings.ReplaceAll(read("docs/examples/monitoring/"+name), "no_progress", ""))
	}
	if *loki == "" {
		t.Skip("without the parsers: .ci/run monitoring")
	}
	cmd := exec.Command(*loki, folder)
	cmd.Stdin = strings.NewReader(session(t, "bash ./stops.sh; cat stops.log", "exec sh script", nil) + watched(t))
	out, err := cmd.CombinedOutput()
	const want = "LameduckRequestsCut LameduckHoldTooShort LameduckKilled LameduckMisconfigured LameduckStopsLose"
	if found := strings.Join(strings.Fields(string(out)), " "); err != nil || found != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}
