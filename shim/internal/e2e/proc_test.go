package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// What the tests read from /proc.

// status returns a field of proc_pid_status(5), and "" if the process does not exist.
func status(pid int, field string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "\n"+field+":")
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

// hasEnded reports whether a process is a zombie or gone.
func hasEnded(pid int) bool {
	state := status(pid, "State")
	return state == "" || strings.HasPrefix(state, "Z")
}

// rss returns a process's anonymous resident memory in KiB.
func rss(pid int) int {
	kib, _ := strconv.Atoi(strings.TrimSuffix(status(pid, "RssAnon"), " kB"))
	return kib
}

// heap is by how many KiB lameduck's memory may grow: Go's runtime lets 4 MiB pile up
// before the first garbage collection.
const heap = 6 << 10

// children returns the pids of a process's children, zombies included, in the test's PID
// namespace.
func children(pid int) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		child, _ := strconv.Atoi(filepath.Base(dir))
		if status(child, "PPid") == strconv.Itoa(pid) {
			pids = append(pids, child)
		}
	}
	return pids
}

// child waits until lameduck has exactly one child, and returns the child's pid.
func (b *box) child() int {
	b.t.Helper()
	var pids []int
	testutil.Eventually(b.t, "lameduck has one child", func() bool {
		pids = children(b.cmd.Process.Pid)
		return len(pids) == 1
	})
	return pids[0]
}

// runMany runs a test that many times, several at once, until a run fails.
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

// bootBare is boot without a stage, to save time: the new namespaces keep the /proc of the
// test.
func bootBare(t *testing.T, args ...string) *box {
	b := newBox(t, "stage", nil, args...)
	b.cmd.Path, b.cmd.Args = binary, b.cmd.Args[3:]
	b.run()
	return b
}

// wantOneLine checks that lameduck's standard error is one line with every text in the line,
// and that standard output is empty.
func (b *box) wantOneLine(texts ...string) {
	b.t.Helper()
	stdout, stderr := b.out.all(), b.err.all()
	if len(stderr) != 1 || len(stdout) > 0 {
		b.t.Errorf("stdout: %v, stderr: %v, want one line on stderr", stdout, stderr)
		return
	}
	for _, text := range texts {
		if !strings.Contains(stderr[0].text, text) {
			b.t.Errorf("stderr: %v, want %q", stderr[0], text)
		}
	}
}

// report returns the last line of lameduck's standard error that is not a warning.
func (b *box) report() string {
	b.t.Helper()
	stderr := b.err.all()
	more := ""
	for _, line := range slices.Backward(stderr) {
		switch text := line.text; {
		case strings.HasPrefix(text, "lameduck: warning: "), strings.Contains(text, `"level":"warn"`):
		case strings.HasPrefix(text, "lameduck: held by "), strings.HasPrefix(text, "lameduck: suggestion: "):
			more = strings.Replace(text, "lameduck: ", "; ", 1) + more
		default:
			return text + more
		}
	}
	b.t.Errorf("no report: %v", stderr)
	return ""
}
