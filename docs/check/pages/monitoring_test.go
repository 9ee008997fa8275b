package pages

import (
	"flag"
	"os"
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
	stops := session(t, "bash ./stops.sh; cat stops.log", "exec sh script", nil)
	var logs []string
	for name, text := range map[string]string{"stops.log": stops, "watch.log": watched(t)} {
		logs = append(logs, filepath.Join(t.TempDir(), name))
		if err := os.WriteFile(logs[len(logs)-1], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(*loki, append([]string{folder}, logs...)...).CombinedOutput()
	const want = "LameduckRequestsCut LameduckHoldTooShort LameduckKilled LameduckMisconfigured LameduckStopsLose"
	if found := strings.Join(strings.Fields(string(out)), " "); err != nil || found != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}
