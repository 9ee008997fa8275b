package procfs

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

func TestMain(m *testing.M) { netns.Main(m, 0) }
