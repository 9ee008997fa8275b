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

// faultHelper runs the helper programs of the fault tests.
func faultHelper(name string, args []string) {
	switch name {
	case "sturdy":
		sturdy()
	case "hog":
		hog()
	case "leftover":
		leftover(args[0], args[1:])
	case "parent":
		parent(args)
	}
	if faults, ok := strings.CutPrefix(name, "stage:"); ok {
		faultyStage(strings.Split(faults, ","), args)
	}
}

// faultyStage is stage with faults for the program of args.
func faultyStage(faults, args []string) {
	runtime.LockOSThread() // many faults belong to one thread
	die(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	die(unix.Mount("proc", "/proc", "proc", 0, ""))
	env := os.Environ()
	for _, fault := range faults {
		name, value, _ := strings.Cut(fault, "=")
		switch {
		case name == "no-env":
			env = nil
		case name == "uid":
			become(value, args)
		case faultFuncs[name] != nil:
			faultFuncs[name](value)
		default:
			die(fmt.Errorf("unknown fault %q", name))
		}
	}
	die(syscall.Exec(args[0], args, env))
}

// faultFuncs are the faults of faultyStage by name: NAME or NAME=VALUE.
var faultFuncs = map[string]func(value string){
	"no-proc":     func(string) { die(unix.Mount("tmpfs", "/proc", "tmpfs", 0, "")) },
	"no-proc-net": func(string) { die(unix.Mount("proc", "/proc", "proc", 0, "subset=pid")) }, // see proc(5)
	"read-only":   func(string) { die(unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")) },
	"no-stdin":    func(string) { unix.Close(0) },
	"no-stderr":   func(string) { unix.Close(2) },
	"deny":        denySyscall,
	"ignore": func(value string) {
		s, err := sig.Parse(value)
		die(err)
		signal.Ignore(syscall.Signal(s))
	},
	"cgroup": func(value string) { die(os.WriteFile(value+"/cgroup.procs", []byte("0"), 0)) },
	"one-cpu": func(string) {
		var cpus unix.CPUSet
		cpus.Set(0)
		die(unix.SchedSetaffinity(0, &cpus))
	},
	"nofile":  func(value string) { limit(unix.RLIMIT_NOFILE, value) },
	"nproc":   func(value string) { limit(unix.RLIMIT_NPROC, value) },
	"seccomp": func(string) { denySyscalls() },
	"own-network": func(string) {
		die(unix.Unshare(unix.CLONE_NEWNET))
		die(netns.Up())
	},
	"no-netlink": func(string) { denyNetlink() },
	"no-groups":  func(string) { denyNetlinkBind() },
	"no-ptrace":  func(string) { die(unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_PTRACE, 0, 0, 0)) },
}

// limit sets a resource limit, "SOFT:HARD".
func limit(resource int, value string) {
	var r unix.Rlimit
	_, err := fmt.Sscanf(value, "%d:%d", &r.Cur, &r.Max)
	die(err)
	die(unix.Prlimit(0, resource, &r, nil))
}

// become changes to another user, without privileges and for good. The test binary and
// lameduck, where named in args, are mounted where any user can execute programs.
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

// Offsets in struct seccomp_data, see seccomp(2): the number, and the low half of each argument.
const (
	syscallNumber = 0
	firstArg      = 16
	thirdArg      = 32
)

// loadWord, ifEqual and result are the instructions of a seccomp filter. ifEqual skips
// further instructions where the loaded word differs from value.
func loadWord(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func ifEqual(value uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
}

func result(value uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
}

// failWith is the result of a denied system call.
func failWith(errno unix.Errno) unix.SockFilter {
	return result(unix.SECCOMP_RET_ERRNO | uint32(errno))
}

var allow = result(unix.SECCOMP_RET_ALLOW)

// denySyscall denies one system call: "NUMBER:ERRNO".
func denySyscall(value string) {
	var number, errno uint32
	_, err := fmt.Sscanf(value, "%d:%d", &number, &errno)
	die(err)
	filterSyscalls([]unix.SockFilter{loadWord(syscallNumber), ifEqual(number, 1), failWith(unix.Errno(errno)), allow})
}

// denySyscalls denies system calls that the default profiles of container runtimes deny,
// and system calls that older kernels and profiles lack.
func denySyscalls() {
	filter := []unix.SockFilter{loadWord(syscallNumber), ifEqual(unix.SYS_CLONE3, 1), failWith(unix.ENOSYS)}
	for _, number := range []uint32{unix.SYS_PWRITEV2, unix.SYS_PERSONALITY, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_IO_URING_SETUP, unix.SYS_PTRACE, unix.SYS_PIDFD_OPEN, unix.SYS_CLOSE_RANGE} {
		filter = append(filter, ifEqual(number, 1), failWith(unix.EPERM))
	}
	filterSyscalls(append(filter, ifEqual(unix.SYS_PRCTL, 3), loadWord(firstArg), ifEqual(unix.PR_SET_CHILD_SUBREAPER, 1), failWith(unix.EPERM), allow))
}

// denyNetlink denies netlink sockets, as gVisor does.
func denyNetlink() {
	filterSyscalls([]unix.SockFilter{
		loadWord(syscallNumber), ifEqual(unix.SYS_SOCKET, 3), loadWord(firstArg), ifEqual(unix.AF_NETLINK, 1), failWith(unix.EPROTONOSUPPORT), allow,
	})
}

// denyNetlinkBind denies binding netlink sockets, and thereby multicast groups. The length
// of the address tells bind(2) of a netlink socket from others.
func denyNetlinkBind() {
	filterSyscalls([]unix.SockFilter{
		loadWord(syscallNumber), ifEqual(unix.SYS_BIND, 3), loadWord(thirdArg), ifEqual(unix.SizeofSockaddrNetlink, 1), failWith(unix.EPERM), allow,
	})
}

// filterSyscalls installs a seccomp filter for this thread.
func filterSyscalls(filter []unix.SockFilter) {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	die(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	die(unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0))
}

// sturdy is catch for TERM and WINCH alone. sturdy starts no thread after "ready", because
// a thread that cannot start would end the program in a full pids cgroup. On "fill" sturdy
// fills the cgroup with processes; on "bomb" a fork bomb fills the cgroup.
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
	os.Exit(98) // the test is gone
}

// fork is fork(2). The child has one thread and half a Go runtime, and may only make raw
// system calls.
//
//go:norace
//go:nosplit
func fork() (pid int, ok bool) {
	r, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return int(r), errno == 0
}

// fill starts processes that wait forever, until fork fails.
//
//go:norace
func fill() {
	for {
		switch pid, ok := fork(); {
		case !ok:
			return
		case pid == 0:
			for {
				unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
	}
}

// bomb starts a process that forks until fork fails, and then waits for a child's exit. Its
// children fork until fork fails, and then exit, so that a fork can succeed at times. bomb
// returns when the cgroup is full.
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

// hog allocates memory until the kernel kills hog. The score of 1000 makes the OOM killer
// choose hog first.
func hog() {
	die(os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0))
	for {
		chunk, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
		die(err)
		chunk[0] = 1
	}
}

// leftover exits 0.3 s after a TERM, or never if how has "stubborn".
func leftover(name string, how []string) {
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
		time.Sleep(time.Hour) // until a KILL
	}
	time.Sleep(300 * time.Millisecond) // a slow exit, for which --linger has to wait
	fmt.Println(name, "done")
	os.Exit(0)
}

// parent starts a program, and waits to be killed.
func parent(args []string) {
	runtime.LockOSThread() // PR_SET_PDEATHSIG is sent at the end of the thread that forked
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	die(err)
	fmt.Println("child", pid)
	time.Sleep(time.Hour) // until a KILL
}
