package proc

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// goEnv are the variables that Go's runtime must not see, and that the command gets. The
// entry point of package sigcatch hides them before the runtime starts.
var goEnv = []string{"GODEBUG=", "GOTRACEBACK=", "GOMAXPROCS=", "GOMEMLIMIT=", "GOGC="}

// HideGoEnv executes our own program once more with the variables of goEnv hidden, unless
// the entry point has hidden them or none is set. HideGoEnv also returns if our program
// cannot be executed again (no /proc, and the file has moved).
func HideGoEnv() {
	if _, hidden := sigcatch.Environ(); hidden {
		return
	}
	passed := passedEnviron()
	env := hide(passed)
	if slices.Equal(env, passed) {
		return
	}
	for _, self := range ownPaths() {
		syscall.Exec(self, os.Args, env)
	}
}

// ownPaths returns the paths at which our own program may be found: /proc/self/exe, and
// the path that was executed, AT_EXECFN of getauxval(3), which may be gone.
func ownPaths() []string {
	const execfn = 31
	paths := []string{"/proc/self/exe"}
	vector, _ := unix.Auxv()
	for _, entry := range vector {
		if entry[0] == execfn {
			paths = append(paths, unix.BytePtrToString(*(**byte)(unsafe.Pointer(&entry[1]))))
		}
	}
	return paths
}

// passedEnviron returns the environment as passed to execve(2). os.Environ drops empty
// entries, and all but the first of two entries with one name. Without the entry point the
// original is read from /proc.
func passedEnviron() []string {
	if env, ok := sigcatch.Environ(); ok {
		return env
	}
	env, err := proc.Environment(procfs.Self)
	if err != nil {
		return os.Environ()
	}
	return env
}

// Environ returns the environment for the command.
func Environ() []string {
	env := passedEnviron()
	for i, entry := range env {
		env[i] = strings.TrimPrefix(entry, hidden(i))
	}
	return env
}

// hide returns a copy of env with the variables of goEnv hidden.
func hide(env []string) []string {
	env = slices.Clone(env)
	for i, entry := range env {
		if slices.ContainsFunc(goEnv, func(name string) bool { return strings.HasPrefix(entry, name) }) {
			env[i] = hidden(i) + entry
		}
	}
	return env
}

// hidden is what precedes the entry with the number i if it is hidden. By the number, no entry
// that somebody else set is taken for a hidden one.
func hidden(i int) string { return "\x01" + strconv.Itoa(i) + ":" }

// reserved is how many spare threads the runtime keeps. The loop has the first thread for
// itself. Three are needed at one time: for a stuck writer and for the sampler, each in a
// system call, and for all other goroutines and the garbage collector. The others are for a
// race in the runtime: a thread that hands the processor to the loop may lose the CPU before
// it is on the list of idle threads, and the next handover then starts a new thread. Under
// load, with the pids cgroup full, two in reserve ended every second run within seconds,
// four a run in sixteen, six no run.
const reserved = 6

// ReserveThreads makes Go's runtime fetch now what it would otherwise fetch when first
// needed: spare threads, more than the usual number by so many, and epoll for the first
// timer.
func ReserveThreads(more int) {
	runtime.GOMAXPROCS(1)
	time.AfterFunc(time.Hour, func() {}).Stop() // a channel timer would open epoll only when waited for
	if !sigcatch.Direct {
		more += 2 // os/signal needs them
	}
	// The runtime starts as many threads for goroutines that are on threads of their own at one time. When
	// the goroutines have ended the threads stay idle, and the runtime uses them instead of starting others.
	more += reserved
	var arrived, done sync.WaitGroup
	arrived.Add(more)
	for range more {
		done.Go(func() {
			runtime.LockOSThread()
			arrived.Done()
			arrived.Wait()
			runtime.UnlockOSThread()
		})
	}
	done.Wait()
}
