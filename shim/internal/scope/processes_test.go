package scope

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// madeProc makes a directory like our /proc, with processes by their parents; the stat file
// of a process with parent -1 is unreadable.
func madeProc(t *testing.T, options string, parents map[int]int) string {
	t.Helper()
	dir := t.TempDir()
	own := strconv.Itoa(os.Getpid())
	must(t, os.Mkdir(filepath.Join(dir, own), 0o700))
	must(t, os.Symlink(own, filepath.Join(dir, "self")))
	must(t, os.WriteFile(filepath.Join(dir, "self", "mountinfo"), fmt.Appendf(nil, "1 2 0:3 / %s rw - proc proc %s\n", dir, options), 0o600))
	parents[os.Getpid()] = 1
	for pid, parent := range parents {
		stat := filepath.Join(dir, strconv.Itoa(pid), "stat")
		if pid != os.Getpid() {
			must(t, os.Mkdir(filepath.Dir(stat), 0o700))
		}
		switch parent {
		case -1:
			must(t, os.Mkdir(stat, 0o700))
		default:
			must(t, os.WriteFile(stat, fmt.Appendf(nil, "%d (a b) S %d 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0", pid, parent), 0o600))
		}
	}
	return dir
}

func TestProcesses(t *testing.T) {
	me := os.Getpid()
	a, b := me+1, me+2
	c, d := me+3, me+4
	for _, test := range []struct {
		name    string
		options string
		parents map[int]int
		whole   bool
		want    []int
		bad     bool
	}{
		{"alone", "rw", map[int]int{}, false, nil, false},
		{"a family, and a stranger", "rw", map[int]int{a: me, b: c, c: a, d: 1}, false, []int{a, b, c}, false},
		{"the whole namespace", "rw", map[int]int{a: me, b: c, c: a, d: 1}, true, []int{a, b, c, d}, false},
		{"an unreadable parent", "rw", map[int]int{a: me, b: -1}, false, []int{a}, true},
		{"hidden", "rw,hidepid=invisible", map[int]int{a: me}, false, []int{a}, true},
		{"the whole namespace, hidden", "rw,hidepid=4", map[int]int{a: me}, true, []int{a}, true},
	} {
		got, err := Processes(procfs.Root(madeProc(t, test.options, test.parents)), test.whole)
		slices.Sort(got)
		if !slices.Equal(got, test.want) || (err != nil) != test.bad {
			t.Errorf("%s: %v, %v", test.name, got, err)
		}
	}
}
