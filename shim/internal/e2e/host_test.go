package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// host is a container's command, in which hooks are executed: a server, on the port
// that it says, or with one as its child, or without any. Standard input says what
// to run: words of how, "hold" or "watch", and flags; and what to send it. What that
// says is said, and how it left.
func host(args []string) {
	var server *exec.Cmd
	switch args[0] {
	case "server":
		listenOnLoopback()
	case "child":
		server = exec.Command("/proc/self/exe", "helper", "serve")
		server.Stdin = testutil.Must(unixPipe())
		server.Stdout = os.Stdout
		die(server.Start())
	}
	var hook *exec.Cmd
	fmt.Println("host ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		switch {
		case words[0] == "exit":
			obey(in.Text())
		case words[0] == "send":
			s, err := sig.Parse(words[1])
			die(err)
			die(hook.Process.Signal(syscall.Signal(s)))
		case words[0] == "listen":
			listenOnLoopback()
		case words[0] == "socket":
			keptFiles = append(keptFiles, testutil.Must(unixSocket(testutil.Must(strconv.Unquote(words[1])))))
			fmt.Println("socket listens")
		case words[0] == "crash":
			server.Process.Kill()
			server.Wait()
		default:
			hook = startHook(words)
		}
	}
	os.Exit(98)
}

// unixSocket is a socket that listens on a path, or on an abstract name after an @.
func unixSocket(path string) (*os.File, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return listener.(*net.UnixListener).File()
}

// unixPipe is the reading end of a pipe that nobody writes to.
func unixPipe() (*os.File, error) {
	r, w, err := os.Pipe()
	keptFiles = append(keptFiles, w)
	return r, err
}

// kept are files that stay open.
var keptFiles []*os.File

func listenOnLoopback() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	die(err)
	go echo(listener)
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port)
}

func echo(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		die(err)
		go func() {
			defer conn.Close()
			for in := bufio.NewScanner(conn); in.Scan(); fmt.Fprintln(conn, "ok") {
			}
		}()
	}
}

// begin runs a hook.
func startHook(words []string) *exec.Cmd {
	cmd := exec.Command(os.Getenv("BINARY"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	r, w, err := os.Pipe()
	die(err)
	cmd.Stdout, cmd.Stderr = w, w
	redirect := ""
how:
	for i, word := range words {
		name, value, is := strings.Cut(word, "=")
		switch {
		case name == "as":
			become := testutil.Must(strconv.Atoi(value))
			cmd.Path = "/mnt/lameduck"
			die(unix.Mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755"))
			die(os.WriteFile(cmd.Path, nil, 0o755))
			die(unix.Mount(os.Getenv("BINARY"), cmd.Path, "", unix.MS_BIND, ""))
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(become), Gid: uint32(become)}}
		case name == "stuck":
			stuck, full, err := os.Pipe()
			die(err)
			keptFiles = append(keptFiles, stuck)
			fd := int(full.Fd())
			unix.SetNonblock(fd, true)
			for err == nil {
				_, err = unix.Write(fd, make([]byte, 1))
			}
			unix.SetNonblock(fd, false)
			cmd.Stderr = full
		case name == "same":
			cmd.Stderr = os.Stderr
		case strings.ContainsAny(name, "<>"):
			redirect += " " + word
		case is && !strings.HasPrefix(word, "-"):
			cmd.Env = append(cmd.Env, word)
		default:
			cmd.Args = append(cmd.Args, words[i:]...)
			break how
		}
	}
	if redirect != "" {
		cmd.Args = append([]string{"sh", "-c", `exec "$0" "$@"` + redirect, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
	start := time.Now()
	die(cmd.Start())
	w.Close()
	heard := make(chan bool)
	go func() {
		for in := bufio.NewScanner(r); in.Scan(); {
			fmt.Println("hook:", in.Text())
		}
		close(heard)
	}()
	go func() {
		cmd.Wait()
		<-heard
		s := cmd.ProcessState
		fmt.Printf("hook left %d after %d ms, used %d ms\n", s.ExitCode(), time.Since(start).Milliseconds(), (s.UserTime() + s.SystemTime()).Milliseconds())
	}()
	return cmd
}
