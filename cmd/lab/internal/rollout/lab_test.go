package rollout

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestBrokenHold shows that an experiment can fail: a hold without a silence is detected,
// and a sound hold beside passes.
func TestBrokenHold(t *testing.T) {
	for _, program := range []string{"haproxy"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	const lameduck = "../../../../lameduck"
	if _, err := os.Stat(lameduck); err != nil {
		t.Fatalf("%v: make build first", err)
	}
	sound := "lameduck --until=quiet" + short
	cmd := exec.Command("/proc/self/exe", "rollout", "-scale=0.4", "-repeat=1", "-servers=go", "-contenders="+broken+";"+sound, lameduck)
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "cannot make namespaces") {
		t.Skipf("no namespaces: %s", out)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v, want 1", err)
	}
	for _, want := range []string{"BROKEN  " + broken, "ok      " + sound, "lab: 1 promises broken"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Logf("output:\n%s", out)
	}
}
