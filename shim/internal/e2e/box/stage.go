package box

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// stage sets up the faults for the first process of new namespaces, separated by commas,
// and executes the program of args as that process.
func stage(list string, args []string) {
	runtime.LockOSThread() // many faults belong to one thread
	Die(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	Die(unix.Mount("proc", "/proc", "proc", 0, ""))
	env := os.Environ()
	for fault := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(fault, "=")
		switch {
		case name == "no-env":
			env = nil
		case name == "uid":
			become(value, args)
		case faults[name] != nil:
			faults[name](value)
		case name != "":
			Die(fmt.Errorf("unknown fault %q", name))
		}
	}
	restoreSpawned()
	Die(syscall.Exec(args[0], args, env))
}

// restoreSpawned gives 32 and 33 their default actions, where they are ignored: make(1) starts
// programs with posix_spawn(3), which leaves them so.
func restoreSpawned() {
	const ignored = 1 // SIG_IGN
	for _, s := range []uintptr{32, 33} {
		var was, action [4]uintptr
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, s, 0, uintptr(unsafe.Pointer(&was)), 8, 0, 0)
		if was[0] == ignored {
			unix.RawSyscall6(unix.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
		}
	}
}

// faults are the faults of a stage by name: NAME or NAME=VALUE.
var faults = map[string]func(value string){
	"no-proc":     func(string) { Die(unix.Mount("tmpfs", "/proc", "tmpfs", 0, "")) },
	"no-proc-net": func(string) { Die(unix.Mount("proc", "/proc", "proc", 0, "subset=pid")) }, // see proc(5)
	"read-only":   func(string) { Die(unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")) },
	"no-stdin":    func(string) { unix.Close(0) },
	"no-stderr":   func(string) { unix.Close(2) },
	"deny":        denySyscall,
	"ignore":      func(value string) { signal.Ignore(parseSignal(value)) },
	"pending": func(value string) { // and blocked: the signal stays pending through exec
		var set unix.Sigset_t
		set.Val[0] = 1 << (parseSignal(value) - 1)
		Die(unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil))
		Die(unix.Tgkill(unix.Getpid(), unix.Gettid(), parseSignal(value)))
	},
	"cgroup": func(value string) { Die(os.WriteFile(value+"/cgroup.procs", []byte("0"), 0)) },
	"one-cpu": func(string) {
		var cpus unix.CPUSet
		cpus.Set(0)
		Die(unix.SchedSetaffinity(0, &cpus))
	},
	"nofile":  func(value string) { limit(unix.RLIMIT_NOFILE, value) },
	"nproc":   func(value string) { limit(unix.RLIMIT_NPROC, value+":"+value) },
	"seccomp": func(string) { denySyscalls() },
	"own-network": func(string) {
		Die(unix.Unshare(unix.CLONE_NEWNET))
		Die(netns.Up())
	},
	// as gVisor does
	"no-netlink": func(string) { denyCall(unix.SYS_SOCKET, firstArg, unix.AF_NETLINK, unix.EPROTONOSUPPORT) },
	// Binding a netlink socket is what joins multicast groups. The length of the address
	// tells bind(2) of a netlink socket from others.
	"no-groups": func(string) { denyCall(unix.SYS_BIND, thirdArg, unix.SizeofSockaddrNetlink, unix.EPERM) },
	"no-ptrace": func(string) { Die(unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_PTRACE, 0, 0, 0)) },
}

func parseSignal(name string) syscall.Signal {
	s, err := sig.Parse(name)
	Die(err)
	return syscall.Signal(s)
}

// limit sets a resource limit, "SOFT:HARD".
func limit(resource int, value string) {
	var r unix.Rlimit
	_, err := fmt.Sscanf(value, "%d:%d", &r.Cur, &r.Max)
	Die(err)
	Die(unix.Prlimit(0, resource, &r, nil))
}

// become changes to another user, without privileges and for good. The test binary and
// lameduck, where named in args, are mounted where any user can execute programs.
func become(uid string, args []string) {
	Die(unix.Mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755"))
	for i, arg := range args {
		if arg == os.Args[0] || arg == Binary {
			args[i] = "/mnt/" + strconv.Itoa(i)
			Die(os.WriteFile(args[i], nil, 0o755))
			Die(unix.Mount(arg, args[i], "", unix.MS_BIND, ""))
		}
	}
	id, err := strconv.Atoi(uid)
	Die(err)
	Die(unix.Setgroups(nil))
	Die(unix.Setresgid(id, id, id))
	Die(unix.Setresuid(id, id, id))
	Die(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
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
	Die(err)
	filterSyscalls(loadWord(syscallNumber), ifEqual(number, 1), failWith(unix.Errno(errno)), allow)
}

// denyCall denies a system call with this argument.
func denyCall(number, arg, value uint32, errno unix.Errno) {
	filterSyscalls(loadWord(syscallNumber), ifEqual(number, 3), loadWord(arg), ifEqual(value, 1), failWith(errno), allow)
}

// denySyscalls denies system calls that the default profiles of container runtimes deny,
// and system calls that older kernels and profiles lack.
func denySyscalls() {
	filter := []unix.SockFilter{loadWord(syscallNumber), ifEqual(unix.SYS_CLONE3, 1), failWith(unix.ENOSYS)}
	for _, number := range []uint32{unix.SYS_PWRITEV2, unix.SYS_PERSONALITY, unix.SYS_UNSHARE, unix.SYS_SETNS,
		unix.SYS_MOUNT,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_IO_URING_SETUP, unix.SYS_PTRACE, unix.SYS_PIDFD_OPEN, unix.SYS_CLOSE_RANGE} {
		filter = append(filter, ifEqual(number, 1), failWith(unix.EPERM))
	}
	filterSyscalls(append(filter, ifEqual(unix.SYS_PRCTL, 3), loadWord(firstArg),
		ifEqual(unix.PR_SET_CHILD_SUBREAPER, 1), failWith(unix.EPERM), allow)...)
}

// filterSyscalls installs a seccomp filter for this thread.
func filterSyscalls(filter ...unix.SockFilter) {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	Die(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	Die(unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0))
}
