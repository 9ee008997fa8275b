package box

import (
	"os"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// MakeCgroup makes a control group below another, see cgroups(7), and removes the group when the test has ended and the
// group's last process is gone.
func MakeCgroup(t *testing.T, parent string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "lameduck-test-")
	if err != nil {
		t.Skip("cannot make a cgroup: ", err)
	}
	t.Cleanup(func() {
		testutil.Eventually(t, "the cgroup is removed", func() bool { return os.Remove(dir) == nil })
	})
	return dir
}
