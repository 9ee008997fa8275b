package box

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// stage sets up the faults for the first process of new namespaces, separated by commas in
// the first of args, and executes the program of the others as that process.
func stage(args []string) {
	list, args := args[0], args[1:]
	runtime.LockOSThread()              // many faults belong to one thread
	path, err := exec.LookPath(args[0]) // lameduck's: make build first
	Die(err)
	args[0] = path
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
	Die(syscall.Exec(args[0], args, env))
}

// faults are the faults of a stage by name: NAME or NAME=VALUE.
var faults = map[string]func(value string){
	"no-proc":     func(string) { Die(unix.Mount("tmpfs", "/proc", "tmpfs", 0, "")) },
	"no-proc-net": func(string) { Die(unix.Mount("proc", "/proc", "proc", 0, "subset=pid")) }, // see proc(5)
	"read-only":   func(string) { Die(unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")) },
	"no-stdin":    func(string) { unix.Close(0) },
	"no-stderr":   func(string) { unix.Close(2) },
	"deny": func(value string) { // NUMBER:ERRNO
		var number, errno uint32
		_, err := fmt.Sscanf(value, "%d:%d", &number, &errno)
		Die(err)
		Die(testutil.DenyThread(number, unix.Errno(errno)))
	},
	"ignore": func(value string) { signal.Ignore(parseSignal(value)) },
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
	"seccomp": denySyscalls,
	// as gVisor does
	"no-netlink": func(string) {
		Die(testutil.DenyThread(unix.SYS_SOCKET, unix.EPROTONOSUPPORT, testutil.Arg(0, unix.AF_NETLINK)))
	},
	// Binding a netlink socket is what joins multicast groups. The length of the address
	// tells bind(2) of a netlink socket from others.
	"no-groups": func(string) {
		Die(testutil.DenyThread(unix.SYS_BIND, unix.EPERM, testutil.Arg(2, unix.SizeofSockaddrNetlink)))
	},
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

// denySyscalls denies system calls that the default profiles of container runtimes deny,
// and system calls that older kernels and profiles lack.
func denySyscalls(string) {
	Die(testutil.DenyThread(unix.SYS_CLONE3, unix.ENOSYS))
	Die(testutil.DenyThread(unix.SYS_PRCTL, unix.EPERM, testutil.Arg(0, unix.PR_SET_CHILD_SUBREAPER)))
	for _, number := range []uint32{
		unix.SYS_PWRITEV2, unix.SYS_PERSONALITY, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_BPF,
		unix.SYS_PERF_EVENT_OPEN, unix.SYS_IO_URING_SETUP, unix.SYS_PTRACE, unix.SYS_PIDFD_OPEN, unix.SYS_CLOSE_RANGE,
	} {
		Die(testutil.DenyThread(number, unix.EPERM))
	}
}
