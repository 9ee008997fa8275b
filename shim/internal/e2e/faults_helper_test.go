package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// faultHelper is the helper programs of the fault tests.
func faultHelper(name string, args []string) {
	switch name {
	case "sturdy":
		sturdy()
	case "hog":
		hog()
	case "remnant":
		remnant(args[0], args[1:])
	case "parent":
		parent(args)
	}
	if faults, ok := strings.CutPrefix(name, "stage:"); ok {
		faultyStage(strings.Split(faults, ","), args)
	}
}

// faultyStage is stage, with something amiss for the program that it becomes.
func faultyStage(faults, args []string) {
	runtime.LockOSThread() // much of it is the thread's alone
	die(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	die(unix.Mount("proc", "/proc", "proc", 0, ""))
	env := os.Environ()
	for _, fault := range faults {
		fault, value, _ := strings.Cut(fault, "=")
		switch fault {
		case "no-proc":
			die(unix.Mount("tmpfs", "/proc", "tmpfs", 0, ""))
		case "no-proc-net": // subset, see proc(5)
			die(unix.Mount("proc", "/proc", "proc", 0, "subset=pid"))
		case "read-only":
			die(unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
		case "no-env":
			env = nil
		case "no-stdin":
			unix.Close(0)
		case "no-stderr":
			unix.Close(2)
		case "deny": // one system call, NUMBER:ERRNO
			var number, errno uint32
			_, err := fmt.Sscanf(value, "%d:%d", &number, &errno)
			die(err)
			filterSyscalls([]unix.SockFilter{
				{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
				{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
				{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | errno},
				{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
			})
		case "ignore":
			s, err := sig.Parse(value)
			die(err)
			signal.Ignore(syscall.Signal(s))
		case "cgroup":
			die(os.WriteFile(value+"/cgroup.procs", []byte("0"), 0))
		case "one-cpu":
			var cpus unix.CPUSet
			cpus.Set(0)
			die(unix.SchedSetaffinity(0, &cpus))
		case "nofile":
			limit(unix.RLIMIT_NOFILE, value)
		case "nproc":
			limit(unix.RLIMIT_NPROC, value)
		case "uid":
			become(value, args)
		case "seccomp":
			denySyscalls()
		case "own-network":
			die(unix.Unshare(unix.CLONE_NEWNET))
			die(netns.Up())
		case "no-netlink":
			denyNetlink()
		case "no-groups":
			denyGroups()
		case "no-ptrace":
			die(unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_PTRACE, 0, 0, 0))
		default:
			die(fmt.Errorf("no fault %q", fault))
		}
	}
	die(syscall.Exec(args[0], args, env))
}

// limit sets a resource limit, "SOFT:HARD".
func limit(resource int, value string) {
	var r unix.Rlimit
	_, err := fmt.Sscanf(value, "%d:%d", &r.Cur, &r.Max)
	die(err)
	die(unix.Prlimit(0, resource, &r, nil))
}

// become drops all privileges for good. Our programs of args move to where that
// user can reach them.
func become(uid string, args []string) {
	die(unix.Mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755"))
	for i, arg := range args {
		if arg == os.Args[0] || arg == binary {
			args[i] = "/mnt/" + strconv.Itoa(i)
			die(os.WriteFile(args[i], nil, 0o755))
			die(unix.Mount(arg, args[i], "", unix.MS_BIND, ""))
		}
	}
	id, err := strconv.Atoi(uid)
	die(err)
	die(unix.Setgroups(nil))
	die(unix.Setresgid(id, id, id))
	die(unix.Setresuid(id, id, id))
	die(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

// denySyscalls refuses some of what the runtimes' default profiles refuse, and
// some that older kernels and profiles do not know.
func denySyscalls() {
	const refuse = unix.SECCOMP_RET_ERRNO
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset} // of struct seccomp_data
	}
	equal := func(value uint32, skip uint8) unix.SockFilter { // else skip
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	answer := func(value uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
	}
	filter := []unix.SockFilter{load(0), equal(unix.SYS_CLONE3, 1), answer(refuse | uint32(unix.ENOSYS))}
	for _, number := range []uint32{unix.SYS_PWRITEV2, unix.SYS_PERSONALITY, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_IO_URING_SETUP, unix.SYS_PTRACE, unix.SYS_PIDFD_OPEN, unix.SYS_CLOSE_RANGE} {
		filter = append(filter, equal(number, 1), answer(refuse|uint32(unix.EPERM)))
	}
	filter = append(filter, equal(unix.SYS_PRCTL, 3), load(16), equal(unix.PR_SET_CHILD_SUBREAPER, 1),
		answer(refuse|uint32(unix.EPERM)), answer(unix.SECCOMP_RET_ALLOW))
	filterSyscalls(filter)
}

// denyNetlink refuses its sockets, as gVisor does.
func denyNetlink() {
	jump := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	filterSyscalls([]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, jump(unix.SYS_SOCKET, 3),
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, jump(unix.AF_NETLINK, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	})
}

// denyGroups refuses to bind netlink sockets, as it takes to join a group; their
// addresses have a length of their own.
func denyGroups() {
	jump := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	filterSyscalls([]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, jump(unix.SYS_BIND, 3),
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 32}, jump(unix.SizeofSockaddrNetlink, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	})
}

func filterSyscalls(filter []unix.SockFilter) {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	die(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	die(unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0))
}

// sturdy is catch for TERM and WINCH alone, and needs no new thread as it runs,
// or a full pids cgroup would kill it. It fills that when told "fill", and has
// a fork bomb go off when told "bomb".
func sturdy() {
	proc.ReserveThreads(2) // two for os/signal
	got := make(chan os.Signal, 100)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGWINCH)
	go func() {
		for s := range got {
			fmt.Println("got", sig.Signal(s.(syscall.Signal)))
		}
	}()
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "fill":
			fill()
			fmt.Println("full")
		case "bomb":
			bomb()
			fmt.Println("bombed")
		default:
			obey(in.Text())
		}
	}
	os.Exit(98) // whoever gave the commands is gone
}

// fork is fork(2). The child has one thread and half a Go runtime: it may make
// raw system calls and nothing else.
//
//go:norace
//go:nosplit
func fork() (pid int, ok bool) {
	r, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return int(r), errno == 0
}

//go:norace
func fill() {
	for {
		switch pid, ok := fork(); {
		case !ok:
			return
		case pid == 0:
			for {
				unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0) // waits for ever
			}
		}
	}
}

// bomb starts a process that forks as long as it can and then waits for room,
// as do all its children, except that they then end: so there is room at times.
// It returns when there is none.
//
//go:norace
func bomb() {
	if pid, _ := fork(); pid != 0 {
		fill()
		return
	}
	first := true
	for {
		switch pid, ok := fork(); {
		case ok && pid == 0:
			first = false
		case !ok && !first:
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		case !ok:
			unix.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), 0, 0, 0, 0, 0)
		}
	}
}

// hog takes memory until the kernel kills it, rather than anybody else.
func hog() {
	die(os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0))
	for {
		chunk, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
		die(err)
		chunk[0] = 1
	}
}

// remnant takes 0.3 s to end when it gets a TERM.
func remnant(name string, how []string) {
	if slices.Contains(how, "setsid") {
		_, err := unix.Setsid()
		die(err)
	}
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGTERM)
	fmt.Println(name, "up")
	<-got
	if slices.Contains(how, "stubborn") {
		fmt.Println(name, "stays")
		time.Sleep(time.Hour)
	}
	time.Sleep(300 * time.Millisecond)
	fmt.Println(name, "done")
	os.Exit(0)
}

// parent starts a program, and waits to be killed.
func parent(args []string) {
	runtime.LockOSThread() // whose end is the parent's, for PR_SET_PDEATHSIG
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	die(err)
	fmt.Println("child", pid)
	time.Sleep(time.Hour)
}
