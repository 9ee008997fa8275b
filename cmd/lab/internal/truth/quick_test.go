package truth

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestQuick plays the quick selection with the built program.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("takes more than a minute")
	}
	const lameduck = "../../../../lameduck"
	if _, err := os.Stat(lameduck); err != nil {
		t.Fatalf("%v: make build first", err)
	}
	out, err := exec.Command("/proc/self/exe", "truth", "-quick", lameduck).CombinedOutput()
	if strings.Contains(string(out), "cannot make namespaces") {
		t.Skipf("no namespaces: %s", out)
	}
	t.Logf("\n%s", out)
	if err != nil {
		t.Error(err)
	}
}
