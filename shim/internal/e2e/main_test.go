package e2e

import (
	"flag"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"golang.org/x/sys/unix"
)

// TestMain runs the tests in a new network namespace, and the helper programs.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		helper(os.Args[2], os.Args[3:])
	}
	if signal.Ignored(unix.SIGHUP) { // under nohup(1); a program inherits an ignored signal, and no handler
		signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	}
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // no core files: many tests kill with QUIT and the like
	flag.Set("test.parallel", "16")                  // the tests mostly wait
	netns.Main(m, syscall.CLONE_NEWNS)
}
