package scope

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
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
	pids := map[string]int{"1": 1, "me": me, "a": me + 1, "b": me + 2, "c": me + 3, "d": me + 4, "?": -1}
	for _, cells := range script.Rows(`
		# name | options of /proc | processes and their parents | found | an error
		alone                       | rw                   |                  |         |
		a family, and a stranger    | rw                   | a:me b:c c:a d:1 | a b c   |
		the whole namespace         | rw                   | a:me b:c c:a d:1 | a b c d |
		an unreadable parent        | rw                   | a:me b:?         | a       | bad
		hidden                      | rw,hidepid=invisible | a:me             | a       | bad
		the whole namespace, hidden | rw,hidepid=4         | a:me             | a       | bad
	`) {
		parents, want := map[int]int{}, []int(nil)
		for word := range strings.FieldsSeq(cells[2]) {
			pid, parent, _ := strings.Cut(word, ":")
			parents[pids[pid]] = pids[parent]
		}
		for name := range strings.FieldsSeq(cells[3]) {
			want = append(want, pids[name])
		}
		whole := strings.HasPrefix(cells[0], "the whole")
		got, err := Processes(procfs.Root(madeProc(t, cells[1], parents)), whole)
		slices.Sort(got)
		if !slices.Equal(got, want) || (err != nil) != (cells[4] == "bad") {
			t.Errorf("%s: %v, %v", cells[0], got, err)
		}
	}
}

// TestProcessStates: the states of processes without sockets. A file named fd stands for
// an unreadable directory.
func TestProcessStates(t *testing.T) {
	for _, cells := range script.Rows(`
		# name | fd | the stat file: state and threads | an error
		reaped                                  |             |     |
		reaped meanwhile                        | unreadable  |     |
		without descriptors                     | empty       | S 1 |
		a zombie                                | empty       | Z 1 |
		a zombie, unreadable                    | unreadable  | Z 1 |
		the first thread has ended              | empty       | Z 3 | bad
		the first thread has ended, unreadable  | unreadable  | Z 3 | bad
		unreadable                              | unreadable  | S 1 | bad
		unreadable, and odd                     | unreadable  | odd | bad
		a socket                                | socket:[7]  | S 1 |
		no socket                               | pipe:[8]    | S 1 |
	`) {
		top := t.TempDir()
		dir := filepath.Join(top, "9")
		fd := filepath.Join(dir, "fd")
		if cells[1] != "" {
			must(t, os.Mkdir(dir, 0o700))
		}
		switch cells[1] {
		case "":
		case "unreadable":
			must(t, os.WriteFile(fd, nil, 0o600))
		case "empty":
			must(t, os.Mkdir(fd, 0o700))
		default:
			must(t, os.Mkdir(fd, 0o700))
			must(t, os.Symlink(cells[1], filepath.Join(fd, "3")))
		}
		if state, threads, found := strings.Cut(cells[2], " "); found {
			stat := fmt.Sprintf("9 (a) %s 7 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 %s 0", state, threads)
			must(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o600))
		} else if state != "" {
			must(t, os.WriteFile(filepath.Join(dir, "stat"), []byte("9 (a) S"), 0o600))
		}
		held := Sockets{Inodes: Inodes{}}
		if err := held.add(procfs.Root(top), 9); (err != nil) != (cells[3] == "bad") {
			t.Errorf("%s: %v", cells[0], err)
		}
		if held.Inodes.Has(7) != (cells[1] == "socket:[7]") || held.Inodes.Has(8) {
			t.Errorf("%s: %v", cells[0], held.Inodes)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLocate(t *testing.T) {
	for _, c := range []struct{ root, path, want string }{
		{"/", "/", "/cg"},
		{"/", "/a/b", "/cg/a/b"},
		{"/a", "/a/b", "/cg/b"},
		{"/a", "/a", "/cg"},
		{"/a", "/ab", ""},
		{"/a", "/", ""},
		{"/..", "/", ""},
	} {
		got, ok := locate(procfs.Mount{Root: c.root, Point: "/cg"}, c.path)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, got, ok)
		}
	}
}

func TestSocketInode(t *testing.T) {
	if n, ok := SocketInode([]byte("socket:[4294967295]")); n != 1<<32-1 || !ok {
		t.Error(n, ok)
	}
	for _, target := range []string{"", "pipe:[5]", "socket:[5", "socket:5]", "socket:[]", "socket:[4294967296]", "/tmp/socket:[5]"} {
		if n, ok := SocketInode([]byte(target)); ok {
			t.Errorf("%q: %d", target, n)
		}
	}
}
