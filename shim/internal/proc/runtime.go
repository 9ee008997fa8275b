package proc

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"
)

// aside is put before the names of variables that Go's runtime reads at its
// very start, while they are kept for the command.
const aside = "_LAMEDUCK_ASIDE_"

// fixed are those variables. They can be taken from the runtime only before it
// starts.
var fixed = []string{"GODEBUG", "GOTRACEBACK"}

// SetAside executes our own program once more without the variables that are
// meant for a command written in Go but would change us. It returns if there
// are none, or if it cannot be done (no /proc, and moved since).
func SetAside() {
	env := os.Environ()
	if !rename(env, "", aside) {
		return
	}
	for _, self := range []string{"/proc/self/exe", os.Args[0]} {
		syscall.Exec(self, os.Args, env)
	}
}

// Restore is env with what SetAside moved back in its place.
func Restore(env []string) []string {
	env = append([]string(nil), env...)
	rename(env, aside, "")
	return env
}

// rename exchanges one prefix for another at the fixed variables of env that
// have a value, and reports whether there were any.
func rename(env []string, from, to string) (any bool) {
	for i, entry := range env {
		for _, name := range fixed {
			if value, ok := strings.CutPrefix(entry, from+name+"="); ok && value != "" {
				env[i], any = to+name+"="+value, true
			}
		}
	}
	return any
}

// parked is how many spare threads wait for the rest of our life: one for each
// goroutine that may sit in a system call (the loop, a stuck writer, the
// catcher of signals) and one in hand.
const parked = 4

// Settle makes Go's runtime frugal and has it fetch now what it would else
// fetch when it is first needed: threads, and epoll for the first timer.
func Settle() {
	runtime.GOMAXPROCS(1)
	if os.Getenv("GOGC") != "" {
		debug.SetGCPercent(100)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		debug.SetMemoryLimit(math.MaxInt64)
	}
	time.AfterFunc(time.Hour, func() {}).Stop() // a channel timer would open epoll only when waited for
	parkThreads()
}

// parkThreads makes the runtime start threads, by holding that many goroutines
// on threads of their own at one time. Let go, the threads are kept idle, and
// the runtime takes one of them where it would else start another.
func parkThreads() {
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
