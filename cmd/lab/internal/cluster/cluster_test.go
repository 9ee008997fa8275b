package cluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
	"github.com/lameduck-init/lameduck/internal/plays"
)

func TestMain(m *testing.M) {
	os.Chdir("../..") // cmd/lab, where the program runs
	os.Exit(m.Run())
}

// fake puts the kubectl of testdata in the place of the real one, and returns a function
// that reads what kubectl was called with, or made.
func fake(t *testing.T, message, lost string) (read func(name string) string) {
	t.Helper()
	for _, program := range []string{"jq", "kubectl"} { // the real one builds with kustomize
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	bin := must.Get(filepath.Abs(here + "testdata"))
	dir := t.TempDir()
	for name, value := range map[string]string{
		"PATH": bin + ":" + os.Getenv("PATH"), "KUBECONFIG": "fake",
		"E2E_LOAD": `tar -xOf "$ARCHIVE" manifest.json >&2`,
		"CALLS":    dir + "/calls", "MADE": dir + "/made", "MESSAGE": message, "LOST": lost,
	} {
		t.Setenv(name, value)
	}
	return func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		return string(text)
	}
}

const quiet = "TERM: nothing in flight: held 10.0 s (quiet), sent TERM, exited 0 at +10.1 s of 60 s"

// TestPlay: all manifests have a row, and are played with images that were built; the policy
// concerns the experiment's namespace alone, which is gone at the end.
func TestPlay(t *testing.T) {
	read := fake(t, quiet, "0")
	var out strings.Builder
	Run(t.Context(), []string{"-rollouts=1", "-run=(yaml|component|(settled|close-idle), dies), new"}, &out)
	if !strings.Contains(out.String(), "stop to exit 10 s, at most 10 s; ended by map[quiet:1 with nothing in flight:1]") {
		t.Error(out.String())
	}
	calls, made := read("calls"), read("made")
	_, rest, _ := strings.Cut(calls, "create namespace ")
	namespace, _, _ := strings.Cut(rest, "\n")
	for text, want := range map[string]string{
		"enforce=restricted":                              calls,
		"enforce=baseline":                                calls,
		"delete namespace " + namespace:                   calls,
		"rollout restart deployment/shop":                 calls,
		"name: " + namespace + "}":                        made,
		"command: [/lameduck, --until=settled, --, /web]": made,
		`-rate=200, -conns=0, "10.0.0.1:80"`:              made,
	} {
		if !strings.Contains(want, text) {
			t.Errorf("no %q in\n%s", text, want)
		}
	}
	paths, _ := filepath.Glob(examples + "*.yaml")
	if made := strings.Count(made, "kind: Deployment"); made != len(paths)+4 || len(paths) < 5 {
		t.Errorf("%d Deployments of %d manifests", made, len(paths))
	}
}

// TestBroken: requests that fail before the rollout and an unreachable cluster are noticed, and what
// the cluster does not have is left out.
func TestBroken(t *testing.T) {
	for row, c := range map[string]struct{ lost, want string }{
		"^install.*kept":     {"9", "before the rollout"},
		"^fleet/policy.*new": {"1", "no stop: the cluster has no MutatingAdmissionPolicy"},
	} {
		fake(t, quiet, c.lost)
		var out strings.Builder
		err := must.Try(func() { Run(t.Context(), []string{"-rollouts=1", "-run=" + row}, &out) })
		if got := fmt.Sprint(err, out.String()); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", row, got)
		}
	}
	for _, kubeconfig := range []string{"", "fake"} {
		t.Setenv("KUBECONFIG", kubeconfig)
		t.Setenv("CALLS", "/nowhere/calls") // the fake fails
		var out strings.Builder
		Run(t.Context(), nil, &out)
		if !strings.HasPrefix(out.String(), "cluster: skipped: ") {
			t.Errorf("KUBECONFIG=%s: %s", kubeconfig, &out)
		}
	}
}

// TestJudge: what breaks a promise, of rows with kept connections: their kinds, how many requests failed,
// and why the holds ended. Before a server that TERM kills, and with kept connections, lameduck may lose a
// tenth of what the fixed delay loses, or two requests.
func TestJudge(t *testing.T) {
	for _, cells := range plays.Rows(`
		by chance          | dies fixed 12, ours dies 2 quiet   | fine
		more than chance   | dies fixed 12, ours dies 3 quiet   | broken
		a tenth            | dies fixed 100, ours dies 10 quiet | fine
		more than a tenth  | dies fixed 100, ours dies 11 quiet | broken
		a lost request     | ours 1 quiet                       | broken
		no hold            | ours 0                             | broken
		a hold to the end  | quiet 0 ceiling                    | broken
		a blind load       | loses 0                            | broken
		a row without pods |                                    | broken
		a busy machine     | 0 late                             | broken
	`) {
		var rows []*row
		for part := range strings.SplitSeq(cells[1], ", ") {
			r := &row{Kinds: strings.Fields(part), kept: true}
			for _, word := range r.Kinds {
				failed, err := strconv.Atoi(word)
				switch {
				case err == nil:
					r.Tally.Kinds = map[load.Kind]int{load.Answered: 500, load.Reset: failed}
					r.Stops = []stop{{}}
				case word == "late":
					r.Tally.LateMS = 2000
				case r.Stops != nil:
					r.Stops[0].Messages = []string{strings.Replace(quiet, "quiet", word, 1)}
				}
			}
			rows = append(rows, r)
		}
		if err := judge(io.Discard, rows); (err != nil) != (cells[2] == "broken") {
			t.Errorf("%s: %v", cells[0], err)
		}
	}
}
