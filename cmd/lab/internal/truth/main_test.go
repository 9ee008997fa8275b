package truth

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// TestMain makes the test binary the laboratory too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "truth" {
		stage.Main(os.Args[1:], stage.Commands{"truth": Run}, stage.Roles{"truth": Roles})
	}
	os.Exit(m.Run())
}

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
