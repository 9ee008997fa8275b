package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// helper runs a helper program: the test binary called as "helper NAME ARG...".
func helper(name string, args []string) {
	if slices.Contains(catchers, name) {
		disablePreemption()
	}
	switch name {
	case "stage":
		stage(args)
	case "stage-early":
		signal.Reset(unix.SIGUSR1)             // back to the default: package sigcatch, which the tests import, catches USR1
		unix.Kill(unix.Getpid(), unix.SIGUSR1) // stays pending: the test blocks USR1
		stage(args)
	case "catch":
		catch()
	case "serve":
		serve()
	case "spin":
		spin()
	case "slow-web":
		webServer(args)
	case "http":
		plainWeb(args[0], len(args) > 1)
	case "listen":
		listen(args[0], args[1])
	case "host":
		host(args)
	case "orphan":
		orphan()
	case "zombies":
		zombies()
	default:
		faultHelper(name, args)
		untilHelper(name, args)
	}
	die(fmt.Errorf("unknown helper %q", name))
}

// die exits with 99 if err is not nil.
func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(99)
	}
}

// stage mounts /proc for the new namespaces and executes the program of args as their PID 1.
func stage(args []string) {
	for _, s := range []uintptr{32, 33} { // make(1) starts programs with posix_spawn(3), which leaves 32 and 33 ignored
		var action [4]uintptr
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
	die(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	die(unix.Mount("proc", "/proc", "proc", 0, ""))
	die(syscall.Exec(args[0], args, os.Environ()))
}

// catchers are the helpers that end in catch.
var catchers = []string{"catch", "serve", "http", "listen", "spin"}

// disablePreemption re-executes the helper once with GODEBUG set, because preemption in Go's
// runtime sends SIGURG, and catch would print "got URG". The runtime reads the setting at its
// start only. The path is that of os.Args, because tests run helpers without /proc.
func disablePreemption() {
	if os.Getenv("GODEBUG") == "" {
		os.Setenv("GODEBUG", "asyncpreemptoff=1")
		die(syscall.Exec(os.Args[0], os.Args, os.Environ()))
	}
}

// catch prints "got NAME" for each signal, and obeys the lines of standard input: "exit N"
// and "killed NAME".
func catch() {
	got := make(chan os.Signal, 1000)
	signal.Notify(got)
	commands := make(chan string)
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			commands <- in.Text()
		}
		os.Exit(98) // the test is gone
	}()
	fmt.Println("ready")
	for {
		select {
		case s := <-got:
			fmt.Println("got", sig.Signal(s.(syscall.Signal)))
		case c := <-commands:
			obey(c)
		}
	}
}

// serve is catch with a server in the same process. serve prints the server's port. The
// server answers each line with a line, "slow" after four seconds.
func serve() {
	listener, err := net.Listen("tcp", "[::]:0")
	die(err)
	go func() {
		for {
			conn, err := listener.Accept()
			die(err)
			go func() {
				defer conn.Close()
				for in := bufio.NewScanner(conn); in.Scan(); fmt.Fprintln(conn, "ok") {
					if in.Text() == "slow" {
						time.Sleep(4 * time.Second) // the time of a slow request
					}
				}
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	fmt.Println("port", port)
	catch()
}

// webServer serves HTTP on port args[0]. Each answer is the answer of the gate on port
// args[1]. With a third argument TERM is a graceful stop.
func webServer(args []string) {
	server := &http.Server{Addr: "127.0.0.1:" + args[0], Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := http.Get("http://127.0.0.1:" + args[1])
		die(err)
		io.Copy(w, answer.Body)
	})}
	signal.Reset() // back to the defaults: package sigcatch, which the tests import, catches signals
	ended := make(chan error)
	if len(args) > 2 {
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, unix.SIGTERM)
		go func() {
			<-stop
			ended <- server.Shutdown(context.Background())
		}()
	}
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		die(err)
	}
	die(<-ended)
	os.Exit(0)
}

// listen is catch with an idle socket in the same process.
func listen(network, path string) {
	switch network {
	case "udp":
		conn, err := net.ListenPacket("udp", "127.0.0.1:5353")
		die(err)
		defer conn.Close()
	case "unix":
		listener, err := net.Listen("unix", path)
		die(err)
		defer listener.Close()
	}
	catch()
}

// obey executes a command line of the catch helper.
func obey(command string) {
	word, arg, _ := strings.Cut(command, " ")
	if word == "exit" {
		code, err := strconv.Atoi(arg)
		die(err)
		os.Exit(code)
	}
	s, err := sig.Parse(arg)
	die(err)
	if word == "inside" {
		die(unix.Kill(unix.Getppid(), unix.Signal(s)))
		return
	}
	signal.Reset(syscall.Signal(s))
	die(unix.Kill(unix.Getpid(), unix.Signal(s)))
}

// spin is catch while garbage collections stop a busy goroutine, which Go's runtime does with
// SIGURG unless preemption is off.
func spin() {
	go func() {
		for {
			fmt.Fprint(io.Discard, os.Args)
		}
	}()
	go func() {
		for range 100 {
			runtime.GC()
		}
		fmt.Println("collected")
	}()
	catch()
}

// TestCatchPrintsNoURG: the catch helper prints no URG of its own runtime, and would print URG
// with preemption.
func TestCatchPrintsNoURG(t *testing.T) {
	t.Parallel()
	run := func(env ...string) *box {
		b := startProgram(t, env, syscall.SysProcAttr{}, helperCommand("spin")...)
		b.out.wait(t, "collected")
		return b
	}
	quiet := run()
	quiet.sendLine("exit 0")
	quiet.wantExit(0)
	if n := quiet.signalCounts()["URG"]; n > 0 {
		t.Errorf("the helper printed URG %d times", n)
	}
	run("GODEBUG=asyncpreemptoff=0").out.wait(t, "got URG")
}

// orphan prints the pid of its parent, once the shell that started orphan has exited.
func orphan() {
	for end := time.Now().Add(testutil.Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		parent := os.Getppid()
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent)); string(name) != "sh\n" {
			fmt.Println("orphan", parent)
			os.Exit(0)
		}
	}
}

// zombies exits with 0 once PID 1 and this helper are the only processes, and fails after 10 s.
func zombies() {
	var left []string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		left = nil
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range stats {
			text, err := os.ReadFile(path)
			if pid, _, _ := strings.Cut(string(text), " "); err == nil && pid != "1" && pid != strconv.Itoa(os.Getpid()) {
				left = append(left, string(text))
			}
		}
		if len(left) == 0 {
			os.Exit(0)
		}
	}
	die(fmt.Errorf("%d processes are left: the first is %s", len(left), left[0]))
}
