package box

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Cgroup is the directory of a control group; see cgroups(7).
type Cgroup string

// NewCgroup makes a control group under the controller, in the hierarchy of version 1, or
// in version 2 if the root group delegates the controller. Without such a hierarchy
// NewCgroup skips the test.
func NewCgroup(t *testing.T, controller string) Cgroup {
	t.Helper()
	parent := "/sys/fs/cgroup/" + controller
	if _, err := os.Stat(parent + "/cgroup.procs"); err != nil {
		parent = "/sys/fs/cgroup"
		delegated, _ := os.ReadFile(parent + "/cgroup.subtree_control")
		if !slices.Contains(strings.Fields(string(delegated)), controller) {
			t.Skip("no cgroup controller ", controller)
		}
	}
	return makeCgroup(t, parent)
}

// NewCgroupV2 makes a control group of version 2 below the test's own. Without that
// hierarchy NewCgroupV2 skips the test.
func NewCgroupV2(t *testing.T) Cgroup {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
			return makeCgroup(t, filepath.Join(root, OwnCgroupV2()))
		}
	}
	t.Skip("no cgroup hierarchy of version 2")
	return ""
}

// makeCgroup makes a control group, and removes the group when the test has ended and the
// group's last process is gone.
func makeCgroup(t *testing.T, parent string) Cgroup {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "lameduck-test-")
	if err != nil {
		t.Skip("cannot make a cgroup: ", err)
	}
	t.Cleanup(func() {
		testutil.Eventually(t, "the cgroup is removed", func() bool { return os.Remove(dir) == nil })
	})
	return Cgroup(dir)
}

// OwnCgroupV2 returns the test's own control group in the hierarchy of version 2.
func OwnCgroupV2() string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok && strings.TrimSpace(path) != "" {
			return strings.TrimSpace(path)
		}
	}
	return "/"
}

func (c Cgroup) Has(name string) bool {
	_, err := os.Stat(filepath.Join(string(c), name))
	return err == nil
}

func (c Cgroup) Get(t *testing.T, name string) int {
	t.Helper()
	text := testutil.Must(os.ReadFile(filepath.Join(string(c), name)))
	return testutil.Must(strconv.Atoi(strings.TrimSpace(string(text))))
}

func (c Cgroup) Set(t *testing.T, name string, value int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(c), name), []byte(strconv.Itoa(value)), 0); err != nil {
		t.Fatal(err)
	}
}
