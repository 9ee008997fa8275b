package procfs

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

const mountinfo = `22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw,nosuid shared:5 - proc proc rw,hidepid=invisible
31 22 0:28 /.. /sys/fs/cgroup ro,relatime shared:9 master:1 - cgroup2 cgroup rw,nsdelegate
32 22 0:28 /a /mnt/with\040blank rw - cgroup2 cgroup rw
nonsense
33 22 - x
`

func TestMounts(t *testing.T) {
	got := parseMounts(mountinfo)
	const want = `[{"/" "ext4" "rw"} {"/proc" "proc" "rw,hidepid=invisible"} ` +
		`{"/sys/fs/cgroup" "cgroup2" "rw,nsdelegate"} {"/mnt/with\\040blank" "cgroup2" "rw"}]`
	if text := fmt.Sprintf("%q", got); text != want {
		t.Errorf("\n got %s\nwant %s", text, want)
	}
	if !hidesProcesses(got, "/proc") || hidesProcesses(got, "/") {
		t.Error("hidepid is not seen, or seen elsewhere")
	}
	if hidesProcesses(append(got, Mount{"/proc", "proc", "rw,hidepid=noaccess"}), "/proc") {
		t.Error("the mount below counts")
	}
}

// TestSelf: the facts about our own process.
func TestSelf(t *testing.T) {
	var proc Root
	p, err := proc.Process(os.Getpid())
	if err != nil || p.PID != os.Getpid() || p.Parent != os.Getppid() || p.Start == 0 || p.Threads == 0 || p.Dead() {
		t.Errorf("%+v, %v", p, err)
	}
	if pids, err := proc.Processes(); err != nil || !slices.Contains(pids, os.Getpid()) {
		t.Errorf("processes %v, %v", pids, err)
	}
	if args, err := proc.Arguments(Self); err != nil || !slices.Equal(args, os.Args) {
		t.Errorf("arguments %q, %v", args, err)
	}
	if env, err := proc.Environment(Self); err != nil || !slices.Equal(env, os.Environ()) {
		t.Errorf("environment %q, %v", env, err)
	}
	if exe, err := proc.Executable(Self); exe != testutil.Must(os.Executable()) {
		t.Errorf("executable %q, %v", exe, err)
	}
	if s, err := proc.Signals(Self); err != nil || s.Caught>>(unix.SIGURG-1)&1 == 0 || (s.Blocked|s.Ignored)&s.Caught != 0 {
		t.Errorf("%+v, %v; a Go program catches URG", s, err)
	}
	if group, _ := unix.Getpgid(0); p.Group != group {
		t.Errorf("the process group is %d, want %d", p.Group, group)
	}
}

// TestArgumentsWithoutEnd: a command line of any length, such as a process may declare at no
// cost, is read to a limit. Arguments may be empty.
func TestArgumentsWithoutEnd(t *testing.T) {
	root := fakeProc(t, "== 7/stat\n"+statLine)
	testutil.WriteFile(t, root.path(7, "cmdline"), "cat\x00\x00")
	if args, err := root.Arguments(7); err != nil || !slices.Equal(args, []string{"cat", ""}) {
		t.Errorf("%q, %v", args, err)
	}
	os.Remove(root.path(7, "cmdline"))
	os.Symlink("/dev/zero", root.path(7, "cmdline"))
	if args, err := root.Arguments(7); err != nil || len(args) != maxArguments {
		t.Errorf("%d arguments, %v", len(args), err)
	}
}

// TestDescriptors: every open descriptor is listed with its target, more than fit into one buffer of
// directory entries.
func TestDescriptors(t *testing.T) {
	file := testutil.Must(unix.MemfdCreate("many", 0))
	defer unix.Close(file)
	const many = 200
	for range many {
		defer unix.Close(testutil.Must(unix.FcntlInt(uintptr(file), unix.F_DUPFD_CLOEXEC, 300)))
	}
	found := map[int]bool{}
	n, err := Root("").EachTarget(os.Getpid(), func(fd int, target []byte) {
		if string(target) == "/memfd:many (deleted)" {
			found[fd] = true
		}
	})
	if err != nil || len(found) != many+1 || n <= many {
		t.Errorf("%d descriptors, %v; %d of the file", n, err, len(found))
	}
}

// TestReparent: a process is read again if its parent ended meanwhile.
func TestReparent(t *testing.T) {
	all := []Process{{PID: 7, Parent: 1}, {PID: 20, Parent: 15}, {PID: 30, Parent: 29}}
	fakeProc(t, "== 20/stat\n"+statLine).reparent(all)
	if all[0].Parent != 1 || all[1].Parent != 7 || all[2].Parent != 29 {
		t.Errorf("%+v", all)
	}
}
