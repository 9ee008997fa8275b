package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// What the tests look at from outside.

// status is a field of proc_pid_status(5), "" where there is no such process.
func status(pid int, field string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "\n"+field+":")
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

// hasEnded reports whether a process has ended.
func hasEnded(pid int) bool {
	state := status(pid, "State")
	return state == "" || strings.HasPrefix(state, "Z")
}

// rss is what a process has of memory of its own, in KiB.
func rss(pid int) int {
	kib, _ := strconv.Atoi(strings.TrimSuffix(status(pid, "RssAnon"), " kB"))
	return kib
}

// heap is what Go's runtime lets pile up before it first collects garbage, and
// some more, in KiB.
const heap = 6 << 10

// children are the pids, as we see them, of a process's children, dead ones too.
func children(pid int) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if child, _ := strconv.Atoi(filepath.Base(dir)); status(child, "PPid") == strconv.Itoa(pid) {
			pids = append(pids, child)
		}
	}
	return pids
}

// child waits until lameduck has but one child.
func (b *box) child() int {
	b.t.Helper()
	var pids []int
	testutil.Eventually(b.t, "one child", func() bool { pids = children(b.cmd.Process.Pid); return len(pids) == 1 })
	return pids[0]
}

// runMany runs a test as often as that, several at a time, until it fails.
func runMany(t *testing.T, rounds int, test func()) {
	var workers sync.WaitGroup
	left := make(chan struct{}, rounds)
	for range rounds {
		left <- struct{}{}
	}
	close(left)
	for range 2 * runtime.NumCPU() {
		workers.Go(func() {
			for range left {
				if !t.Failed() {
					test()
				}
			}
		})
	}
	workers.Wait()
}

// bootBare is a box without a stage, which spares its time. /proc is not its own.
func bootBare(t *testing.T, args ...string) *box {
	b := newBox(t, "stage", nil, args...)
	b.cmd.Path, b.cmd.Args = binary, b.cmd.Args[3:]
	b.run()
	return b
}
