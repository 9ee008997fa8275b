package box

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// Main runs the tests of a package in new network and mount namespaces, or a helper: one of
// this package's, or one of own.
func Main(m *testing.M, own map[string]func(args []string)) {
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		helpers := map[string]func(args []string){"stage": stage, "catch": catch}
		maps.Copy(helpers, own)
		helpers[os.Args[2]](os.Args[3:])
		os.Exit(0)
	}
	if signal.Ignored(unix.SIGHUP) { // under nohup(1); a program inherits an ignored signal, and no handler
		signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	}
	restoreSpawned()
	for fd := 3; fd < 1024; fd++ { // what was open before, as under flock(1): no program inherits it
		unix.CloseOnExec(fd)
	}
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // no core files: many tests kill with QUIT and the like
	flag.Set("test.parallel", "16")                  // the tests mostly wait
	netns.Main(m, syscall.CLONE_NEWNS)
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

// Die ends a helper with 99 if err is not nil.
func Die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(99)
	}
}
