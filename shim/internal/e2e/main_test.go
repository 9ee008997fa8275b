package e2e

import (
	"flag"
	"os"
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"golang.org/x/sys/unix"
)

// The tests run in a network namespace of their own, and start lameduck as
// PID 1 of further namespaces.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		helper(os.Args[2], os.Args[3:])
	}
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // many a child is killed by QUIT and the like
	flag.Set("test.parallel", "16")                  // the scripts mostly wait
	netns.Main(m, syscall.CLONE_NEWNS)
}
