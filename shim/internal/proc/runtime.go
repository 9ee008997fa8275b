package proc

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// hidden is the first byte of the names of variables that Go's runtime was not
// to see, while they are kept for the command. Where our ELF entry point came
// first (package sig), it has hidden them in time.
const hidden = "\x01"

// meant are those variables, without their first byte.
var meant = []string{"ODEBUG=", "OTRACEBACK=", "OMAXPROCS=", "OMEMLIMIT=", "OGC="}

// SetAside executes our own program once more with those variables hidden,
// where it was not done in time. It returns if there are none, or if it cannot
// be done (no /proc, and moved since).
func SetAside() {
	env := Environ()
	if !rename(env, "G", hidden) {
		return
	}
	for _, self := range ourselves() {
		syscall.Exec(self, os.Args, env)
	}
}

// ourselves are the paths at which our own program may be found: the second is
// the one that we were executed by, getauxval(3)'s AT_EXECFN, which may be gone.
func ourselves() []string {
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

// Environ returns the environment as execve(2) passed it. os.Environ does not: of two
// entries with one name it drops the second, and it drops empty entries. Without our
// entry point /proc has the original.
func Environ() []string {
	if env, ok := sigcatch.Environ(); ok {
		return env
	}
	text, err := os.ReadFile("/proc/self/environ")
	switch {
	case err != nil:
		return os.Environ()
	case len(text) == 0:
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// Restore is env with what was hidden.
func Restore(env []string) []string {
	env = slices.Clone(env)
	rename(env, hidden, "G")
	return env
}

// rename exchanges the first byte of those variables of env that have a value,
// and reports whether there were any.
func rename(env []string, from, to string) (any bool) {
	for i, entry := range env {
		rest, ok := strings.CutPrefix(entry, from)
		if ok && slices.ContainsFunc(meant, func(name string) bool { return strings.HasPrefix(rest, name) }) {
			env[i], any = to+rest, true
		}
	}
	return any
}

// parked is how many spare threads wait for the rest of our life. The loop has the
// first thread for itself; besides a stuck writer may sit in a system call, the
// garbage collector may run, and without our entry point the runtime has two
// threads more for signals.
const parked = 4

// Settle makes Go's runtime frugal and has it fetch now what it would else
// fetch when it is first needed: threads, so many more than usual, and epoll for
// the first timer.
func Settle(more int) {
	runtime.GOMAXPROCS(1)
	time.AfterFunc(time.Hour, func() {}).Stop() // a channel timer would open epoll only when waited for
	parkThreads(parked + more)
}

// parkThreads makes the runtime start threads, by holding that many goroutines
// on threads of their own at one time. Let go, the threads are kept idle, and
// the runtime takes one of them where it would else start another.
func parkThreads(parked int) {
	var here, done sync.WaitGroup
	leave := make(chan struct{})
	here.Add(parked)
	for range parked {
		done.Go(func() {
			runtime.LockOSThread()
			here.Done()
			<-leave
			runtime.UnlockOSThread()
		})
	}
	here.Wait()
	close(leave)
	done.Wait()
}
