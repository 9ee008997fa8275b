package shim

import (
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// TestMain runs the tests in network and mount namespaces of their own.
func TestMain(m *testing.M) { netns.Main(m, syscall.CLONE_NEWNS) }
