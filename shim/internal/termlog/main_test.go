package termlog

import (
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// TestMain runs the tests in a mount namespace of their own.
func TestMain(m *testing.M) { netns.Main(m, syscall.CLONE_NEWNS) }
