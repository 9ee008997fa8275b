package faults_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

// newCgroup makes a control group, see cgroups(7), under the controller, in the hierarchy of version 1, or
// in version 2 if the root group delegates the controller. Without such a hierarchy
// newCgroup skips the test.
func newCgroup(t *testing.T, controller string) (dir string) {
	t.Helper()
	parent := "/sys/fs/cgroup/" + controller
	if _, err := os.Stat(parent + "/cgroup.procs"); err != nil {
		parent = "/sys/fs/cgroup"
		delegated, _ := os.ReadFile(parent + "/cgroup.subtree_control")
		if !slices.Contains(strings.Fields(string(delegated)), controller) {
			t.Skip("no cgroup controller ", controller)
		}
	}
	return box.MakeCgroup(t, parent)
}

// limit sets files of a control group, those that its hierarchy has.
func limit(t *testing.T, group string, value int, files ...string) {
	t.Helper()
	done := false
	for _, file := range files {
		done = os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(value)), 0) == nil || done
	}
	if !done {
		t.Fatalf("the cgroup has no %q", files)
	}
}
