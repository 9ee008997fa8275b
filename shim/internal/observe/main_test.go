package observe

import (
	"fmt"
	"os"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// TestMain runs the tests in a new network namespace. As "helper look PORT" the test binary
// is the program measured by the benchmark.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "helper" && os.Args[2] == "look" {
		if err := looker(os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "helper:", err)
			os.Exit(99)
		}
		os.Exit(0)
	}
	netns.Main(m, 0)
}
