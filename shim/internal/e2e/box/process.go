package box

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Status returns a field of proc_pid_status(5), and "" if the process does not exist.
func Status(pid int, field string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return Field(string(text), field)
}

// Field returns a field of the text of such a file.
func Field(text, field string) string {
	_, rest, _ := strings.Cut(text, "\n"+field+":")
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

// HasEnded reports whether a process is a zombie or gone. While a thread executes another program,
// as stage does, the first thread is a zombie too.
func HasEnded(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	state := Field(string(text), "State")
	return state == "" || strings.HasPrefix(state, "Z") && Field(string(text), "Threads") == "1"
}

// AwaitState waits until the state of a process is S (sleeping) or T (stopped).
func AwaitState(t *testing.T, pid int, state string) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("process %d in state %s", pid, state), func() bool {
		return strings.HasPrefix(Status(pid, "State"), state)
	})
}

// ParseSignals parses a set of signals of proc_pid_status(5).
func ParseSignals(text string) sig.Set {
	bits, _ := strconv.ParseUint(text, 16, 64)
	return sig.Set(bits)
}

// Gauge is what a process uses.
type Gauge struct {
	Descriptors, Zombies, KiB int // KiB of anonymous resident memory
	Threads                   string
}

// Gauge gauges lameduck.
func (b *Box) Gauge() (g Gauge) {
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.Pid()))
	g = Gauge{Descriptors: len(fds), Threads: Status(b.Pid(), "Threads")}
	fmt.Sscan(Status(b.Pid(), "RssAnon"), &g.KiB)
	for _, child := range Children(b.Pid()) {
		if strings.HasPrefix(Status(child, "State"), "Z") {
			g.Zombies++
		}
	}
	return g
}

// Grown reports whether a process uses more than before. Go's runtime lets 4 MiB pile up before the first
// garbage collection.
func (g Gauge) Grown(before Gauge) bool {
	return g.Descriptors > before.Descriptors || g.Zombies > 0 || g.Threads != before.Threads || g.KiB > before.KiB+6<<10
}

// Switches returns how often each thread of a process has given up or lost the processor; see
// proc_pid_status(5).
func Switches(pid int) map[int]int {
	counts := map[int]int{}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task + "/status")
		thread, _ := strconv.Atoi(filepath.Base(task))
		given, _ := strconv.Atoi(Field(string(text), "voluntary_ctxt_switches"))
		lost, _ := strconv.Atoi(Field(string(text), "nonvoluntary_ctxt_switches"))
		counts[thread] = given + lost
	}
	return counts
}

// Sleeps reports whether no thread of a process runs for two seconds.
func Sleeps(pid int) bool {
	before := Switches(pid)
	time.Sleep(2 * time.Second) // what is measured
	return len(before) > 0 && maps.Equal(before, Switches(pid))
}

// Children returns the pids of a process's children, zombies included.
func Children(pid int) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		child, _ := strconv.Atoi(filepath.Base(dir))
		if Status(child, "PPid") == strconv.Itoa(pid) {
			pids = append(pids, child)
		}
	}
	return pids
}

// Child waits until the program has exactly one child, and returns the child's pid.
func (b *Box) Child() int {
	b.T.Helper()
	var pids []int
	testutil.Eventually(b.T, "a single child", func() bool {
		pids = Children(b.Pid())
		return len(pids) == 1
	})
	return pids[0]
}

// ReadLines returns the lines of a file, or the words of one that separates them by zero
// bytes.
func ReadLines(path string) []string {
	text, _ := os.ReadFile(path)
	return strings.FieldsFunc(string(text), func(c rune) bool { return c == '\n' || c == 0 })
}

// FillPipe writes until a write would block.
func FillPipe(t *testing.T, w *os.File) {
	fd := int(w.Fd())
	unix.SetNonblock(fd, true)
	defer unix.SetNonblock(fd, false)
	for size := 4096; size > 0; size /= 8 {
		var err error
		for err == nil || err == unix.EINTR {
			_, err = unix.Write(fd, make([]byte, size))
		}
		if err != unix.EAGAIN {
			t.Error(err)
		}
	}
}

// Assemble returns the program that a file of assembly language for amd64 makes: small to fork,
// and without a loader.
func Assemble(t *testing.T, source string) (path string) {
	t.Helper()
	Needs(t, "gcc")
	if runtime.GOARCH != "amd64" {
		t.Skip("no assembly for ", runtime.GOARCH)
	}
	path = filepath.Join(testutil.Must(filepath.EvalSymlinks(t.TempDir())), "program")
	if out, err := exec.Command("gcc", "-nostdlib", "-static", "-o", path, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

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
