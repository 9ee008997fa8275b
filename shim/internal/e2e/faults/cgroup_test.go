package faults_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// cgroup is the directory of a control group; see cgroups(7).
type cgroup string

// newCgroup makes a control group under the controller, in the hierarchy of version 1, or
// in version 2 if the root group delegates the controller. Without such a hierarchy
// newCgroup skips the test.
func newCgroup(t *testing.T, controller string) cgroup {
	t.Helper()
	parent := "/sys/fs/cgroup/" + controller
	if _, err := os.Stat(parent + "/cgroup.procs"); err != nil {
		parent = "/sys/fs/cgroup"
		delegated, _ := os.ReadFile(parent + "/cgroup.subtree_control")
		if !slices.Contains(strings.Fields(string(delegated)), controller) {
			t.Skip("no cgroup controller ", controller)
		}
	}
	return cgroup(box.MakeCgroup(t, parent))
}

func (c cgroup) has(name string) bool {
	_, err := os.Stat(filepath.Join(string(c), name))
	return err == nil
}

func (c cgroup) get(t *testing.T, name string) int {
	t.Helper()
	text := testutil.Must(os.ReadFile(filepath.Join(string(c), name)))
	return testutil.Must(strconv.Atoi(strings.TrimSpace(string(text))))
}

func (c cgroup) set(t *testing.T, name string, value int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(c), name), []byte(strconv.Itoa(value)), 0); err != nil {
		t.Fatal(err)
	}
}
