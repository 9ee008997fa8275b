package procfs

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCgroupPath(t *testing.T) {
	for text, want := range map[string]string{
		"0::/\n":                            "/",
		"12:pids:/a\n0::/kubepods/pod1/c\n": "/kubepods/pod1/c",
		"1:name=systemd:/a\n":               "",
		"":                                  "",
		"0::/a:b":                           "/a:b",
	} {
		if got := cgroupPath(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

const mountinfo = `22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw,nosuid shared:5 - proc proc rw,hidepid=invisible
31 22 0:28 /.. /sys/fs/cgroup ro,relatime shared:9 master:1 - cgroup2 cgroup rw,nsdelegate
32 22 0:28 /a /mnt/with\040blank\134x rw - cgroup2 cgroup rw
nonsense
33 22 - x
`

func TestMounts(t *testing.T) {
	want := []Mount{
		{"/", "/", "ext4", "rw"},
		{"/", "/proc", "proc", "rw,hidepid=invisible"},
		{"/..", "/sys/fs/cgroup", "cgroup2", "rw,nsdelegate"},
		{"/a", `/mnt/with blank\x`, "cgroup2", "rw"},
	}
	got := parseMounts(mountinfo)
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if !hidesProcesses(got, "/proc") || hidesProcesses(got, "/") {
		t.Error("hidepid is not seen, or seen elsewhere")
	}
	got = append(got, Mount{"/", "/proc", "proc", "rw,hidepid=noaccess"})
	if hidesProcesses(got, "/proc") {
		t.Error("the mount below counts")
	}
	for _, escaped := range []string{`\`, `\04`, `\999`, `a\`} {
		if got := unescape(escaped); got != escaped {
			t.Errorf("%q: %q", escaped, got)
		}
	}
}

func TestStat(t *testing.T) {
	const rest = " S 7 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 99 1000\n"
	for text, want := range map[string]Process{
		"12 (sh)" + rest:          {PID: 12, Parent: 7, State: 'S', Threads: 3, Start: 99},
		"12 (a) Z 1 (b c)" + rest: {PID: 12, Parent: 7, State: 'S', Threads: 3, Start: 99},
	} {
		if got, err := parseStat(12, []byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "12", "12 (sh)", "12 (sh) S 7", "12 (sh) S x 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3"} {
		if got, err := parseStat(12, []byte(text)); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestGone: a process may end before its file is opened, or before it is read.
func TestGone(t *testing.T) {
	for err, want := range map[error]bool{unix.ENOENT: true, unix.ESRCH: true, unix.EACCES: false, unix.EPERM: false, nil: false} {
		if Gone(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
	if _, err := Root("").Process(1 << 30); !Gone(err) {
		t.Errorf("a process that never was: %v", err)
	}
}

// TestChild: the facts about a child process.
func TestChild(t *testing.T) {
	cmd := exec.Command("cat", "-", "")
	cmd.Env = []string{"A=1", "B="}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip("cannot start cat: ", err)
	}
	defer cmd.Wait()
	defer stdin.Close()
	// Start returns inside execve(2), before the kernel has set the arguments in /proc.
	echo := make([]byte, 1)
	if _, err := stdin.Write(echo); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, echo); err != nil {
		t.Fatal(err)
	}
	var proc Root
	pid := cmd.Process.Pid
	if p, err := proc.Process(pid); err != nil || p.PID != pid || p.Parent != os.Getpid() || p.Start == 0 || p.Threads != 1 || p.Dead() {
		t.Errorf("%+v, %v; want pid %d, parent %d", p, err, pid, os.Getpid())
	}
	if args, err := proc.Arguments(pid); err != nil || !slices.Equal(args, cmd.Args) {
		t.Errorf("arguments %q, %v", args, err)
	}
	if env, err := proc.Environment(pid); err != nil || !slices.Equal(env, cmd.Env) {
		t.Errorf("environment %q, %v", env, err)
	}
	if exe, err := proc.Executable(pid); err != nil || !filepath.IsAbs(exe) {
		t.Errorf("executable %q, %v", exe, err)
	}
	if mask, err := proc.Caught(pid); err != nil || mask != 0 {
		t.Errorf("caught: %x, %v; cat catches nothing", mask, err)
	}
	lists(t, pid)
}

// TestArgumentsWithoutEnd: a command line of any length, such as a process may declare at no
// cost, is read to a limit.
func TestArgumentsWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "7"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "7", "cmdline")); err != nil {
		t.Fatal(err)
	}
	if args, err := Root(dir).Arguments(7); err != nil || len(args) != maxArguments {
		t.Errorf("%d arguments, %v", len(args), err)
	}
}

// lists checks that a child is among the processes and among the descendants.
func lists(t *testing.T, pid int) {
	t.Helper()
	var proc Root
	if pids, err := proc.Processes(); err != nil || !slices.Contains(pids, pid) || !slices.Contains(pids, os.Getpid()) || !slices.IsSorted(pids) {
		t.Errorf("%v, %v; want %d and %d among them", pids, err, pid, os.Getpid())
	}
	if family, err := proc.Descendants(); err != nil || !slices.ContainsFunc(family, func(p Process) bool { return p.PID == pid }) {
		t.Errorf("%+v, %v; want %d among them", family, err, pid)
	}
}

// TestDescriptors: every open descriptor is listed with its target, and a closed
// descriptor is not. More than one buffer of directory entries is read.
func TestDescriptors(t *testing.T) {
	var open []int
	for range 200 {
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 300)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, fd)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	targets := map[int]string{}
	n, err := Root("").EachTarget(os.Getpid(), func(fd int, target []byte) { targets[fd] = string(target) })
	for _, fd := range append(open, pipe[:]...) {
		if targets[fd] == "" || err != nil {
			t.Fatalf("%d is not in %v, %v", fd, targets, err)
		}
	}
	if want, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(pipe[0])); err != nil || targets[pipe[0]] != want || want == "" || n != len(targets) {
		t.Errorf("%d targets, %v; %q for the pipe, want %q", n, err, targets[pipe[0]], want)
	}
	for _, fd := range append(open, pipe[:]...) {
		unix.Close(fd)
	}
	_, err = Root("").EachTarget(Self, func(fd int, _ []byte) {
		if fd == open[100] {
			t.Errorf("%d was closed", fd)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReparent: a process is read again if its parent ended meanwhile.
func TestReparent(t *testing.T) {
	dir := t.TempDir()
	stat := filepath.Join(dir, "20", "stat")
	if err := os.Mkdir(filepath.Dir(stat), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stat, []byte("20 (a) S 10 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []Process{{PID: 10, Parent: 1}, {PID: 20, Parent: 15, Start: 5}, {PID: 30, Parent: 29}}
	Root(dir).reparent(all)
	if all[1].Parent != 10 || all[2].Parent != 29 || all[0] != (Process{PID: 10, Parent: 1}) {
		t.Errorf("%+v", all)
	}
}

// TestNoProc: without /proc every list is nil, with an error.
func TestNoProc(t *testing.T) {
	proc := Root(t.TempDir())
	if pids, err := proc.Processes(); err == nil || pids != nil {
		t.Errorf("processes %v, %v", pids, err)
	}
	if family, err := proc.Descendants(); err == nil || family != nil {
		t.Errorf("descendants %v, %v", family, err)
	}
	if n, err := proc.EachTarget(Self, nil); err == nil || n != 0 {
		t.Errorf("%d descriptors, %v", n, err)
	}
}

func FuzzProcesses(f *testing.F) {
	f.Add(mountinfo)
	f.Add("12 (sh) S 7 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 99\n")
	f.Fuzz(func(t *testing.T, text string) {
		parseMounts(text)
		parseStat(1, []byte(text))
		cgroupPath(text)
	})
}
