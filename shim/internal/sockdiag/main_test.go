package sockdiag

import (
	"os"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "unprivileged" {
		runUnprivileged(os.Args[2])
		os.Exit(0)
	}
	netns.Main(m, 0)
}
