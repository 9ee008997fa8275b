package scope

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

func TestMain(m *testing.M) { netns.Main(m, 0) }

// statOf is the stat file of a process.
func statOf(state string, parent int, threads string) string {
	return fmt.Sprintf("9 (a) %s %d 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 %s 0 0", state, parent, threads)
}

// TestHeldSockets: whose descriptors are read. What cannot be looked at is an error. Each process
// has a socket, whose inode is the process's number.
func TestHeldSockets(t *testing.T) {
	me := os.Getpid()
	pids := map[string]int{"init": 1, "me": me, "a": me + 1, "b": me + 2, "c": me + 3, "d": me + 4}
	for _, cells := range tables.Rows(`
		# name | options of /proc | processes and their parents | found | an error
		alone                       | rw                   |                     |         |
		a family, and a stranger    | rw                   | a:me b:c c:a d:init | a b c   |
		the whole namespace         | rw                   | a:me b:c c:a d:init | a b c d |
		an unreadable parent        | rw                   | a:me b:?            | a       | bad
		unreadable descriptors      | rw                   | a:me b:me!          | a       | bad
		hidden                      | rw,hidepid=invisible | a:me                | a       | bad
		the whole namespace, hidden | rw,hidepid=4         | a:me                | a       | bad
		another namespace           |                      | a:me                |         | bad
	`) {
		self := me
		if cells[1] == "" {
			self++
		}
		files := fmt.Sprintf("== self\n->%d\n== %d/stat\n%s\n", self, me, statOf("S", 1, "1"))
		for word := range strings.FieldsSeq(cells[2]) {
			pid, parent, _ := strings.Cut(word, ":")
			parent, isDenied := strings.CutSuffix(parent, "!")
			stat := "stat\n" + statOf("S", pids[parent], "1")
			if parent == "?" {
				stat = "stat/"
			}
			fd := fmt.Sprintf("fd/3\n->socket:[%d]", pids[pid])
			if isDenied {
				fd = "fd" // a file
			}
			files += fmt.Sprintf("== %d/%s\n== %[1]d/%[3]s\n", pids[pid], fd, stat)
		}
		root := testutil.Files(t, files)
		mounts := fmt.Sprintf("1 2 0:3 / %s rw - proc proc %s\n", root, cells[1])
		testutil.WriteFile(t, fmt.Sprintf("%s/%d/mountinfo", root, me), mounts)
		want := Inodes{}
		for name := range strings.FieldsSeq(cells[3]) {
			want[uint32(pids[name])] = true
		}
		whole := strings.HasPrefix(cells[0], "the whole")
		got, err := HeldSockets(procfs.Root(root), whole)
		if !maps.Equal(got, want) || (err != nil) != (cells[4] == "bad") {
			t.Errorf("%s: %v, %v; want %v", cells[0], got, err, want)
		}
	}
}

// TestProcessStates: the states of processes without sockets. A file named fd stands for
// an unreadable directory.
func TestProcessStates(t *testing.T) {
	for _, cells := range tables.Rows(`
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
	`) {
		files := map[string]string{"unreadable": "== 9/fd\n", "empty": "== 9/fd/\n"}[cells[1]]
		if state, threads, found := strings.Cut(cells[2], " "); found {
			files += "== 9/stat\n" + statOf(state, 7, threads)
		} else if state != "" {
			files += "== 9/stat\n9 (a) S"
		}
		if err := (Inodes{}).add(procfs.Root(testutil.Files(t, files)), 9); (err != nil) != (cells[3] == "bad") {
			t.Errorf("%s: %v", cells[0], err)
		}
	}
}

func TestSocketInode(t *testing.T) {
	for target, want := range map[string]uint32{
		"socket:[4294967295]": 1<<32 - 1, "pipe:[5]": 0, "socket:5]": 0, "socket:[]": 0, "socket:[4294967296]": 0, "/tmp/socket:[5]": 0,
	} {
		if n := SocketInode([]byte(target)); n != want {
			t.Errorf("%q: %d", target, n)
		}
	}
}

// TestUnseen: which sockets of a child make "no listener" uncertain.
func TestUnseen(t *testing.T) {
	netns.Need(t)
	child := exec.Command("cat")
	var want []string
	add := func(family, kind, protocol int, unseen string) {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			t.Logf("no socket for %q: %v", unseen, err)
			return
		}
		child.ExtraFiles = append(child.ExtraFiles, os.NewFile(uintptr(fd), "socket"))
		if unseen != "" {
			want = append(want, unseen)
		}
	}
	add(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, "SCTP sockets")
	add(unix.AF_INET, unix.SOCK_RAW, 253, "raw sockets")
	add(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, `sockets of the protocol "UDP-Lite"`)
	add(unix.AF_VSOCK, unix.SOCK_STREAM, 0, "vsock sockets")
	add(unix.AF_PACKET, unix.SOCK_RAW, 0, "")
	add(unix.AF_INET, unix.SOCK_DGRAM, 0, "")
	add(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, "")
	stdin := testutil.Must(child.StdinPipe())
	if err := child.Start(); err != nil {
		t.Skip("cannot start cat: ", err)
	}
	defer child.Wait()
	defer stdin.Close()
	for _, file := range child.ExtraFiles {
		file.Close() // or it would be a socket of lameduck's own
	}
	s := Find(Facts{}, func() ([]tcp.Socket, error) { return nil, nil })
	if slices.Sort(s.Unseen); !slices.Equal(s.Unseen, want) || !s.Complete {
		t.Errorf("%+v, want %v", s, want)
	}
}

// TestSocketKind: an error is never "there is none", unless the socket is closed or the
// system names no protocols.
func TestSocketKind(t *testing.T) {
	for err, unseen := range map[error]bool{
		unix.ENOENT: false, unix.ESRCH: false, unix.EOPNOTSUPP: false, unix.ENODATA: false, unix.ENOSYS: false,
		unix.EACCES: true, unix.EPERM: true,
	} {
		if got := socketKind("", err); (got != "") != unseen {
			t.Errorf("%v: %q", err, got)
		}
	}
}

// TestGroups: our group is the one that is mounted, or is found below by its path, and has no other below. Any
// directory may stand for a group.
func TestGroups(t *testing.T) {
	proc := testutil.Files(t, "== top/own/procs\n== top/full/sub/\n== self/\n")
	for _, cells := range tables.Rows(`
		# mounted | our group | its path in our cgroup namespace | an error
		/own  | /own  | /     |
		      | /own  | /own  |
		/full | /full | /     | there are control groups below ours
		      | /full | /full | there are control groups below ours
		      | /own  | /     | cannot find our own control group in a cgroup2 file system
	`) {
		testutil.WriteFile(t, proc+"/self/mountinfo", "1 2 0:3 / "+proc+"/top"+cells[0]+" rw - cgroup2 none rw\n")
		testutil.WriteFile(t, proc+"/self/cgroup", "1:cpu:/elsewhere\n0::"+cells[2]+"\n")
		var stat unix.Stat_t
		unix.Stat(proc+"/top"+cells[1], &stat)
		text := ""
		if err := checkCgroup(procfs.Root(proc), stat.Ino); err != nil {
			text = err.Error()
		}
		if text != cells[3] {
			t.Errorf("%q: %s", cells, text)
		}
	}
}
