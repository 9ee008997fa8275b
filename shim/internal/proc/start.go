package proc

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// Command is a program to start.
type Command struct {
	Argv, Env  []string
	Session    bool // in a session of its own, with our controlling terminal
	SameGroup  bool // in our process group, rather than in a group of its own
	Background bool // beside another command: not in the foreground, and /dev/null to read

	// Start sets these:
	blocked, ignored sig.Set // as when we were executed
	released         sig.Set // see Processes
}

// StartError is the error of a command that could not be started.
type StartError struct {
	Command string
	Err     error // a syscall.Errno
	found   bool  // the file exists
}

// Error names the command and the reason.
func (e *StartError) Error() string {
	if e.found && e.Err == syscall.ENOENT {
		return fmt.Sprintf("cannot run %q: its interpreter was not found", e.Command)
	}
	if e.Err == syscall.EAGAIN {
		return fmt.Sprintf("cannot run %q: no further process is allowed: raise pids.max, or ulimit -u", e.Command)
	}
	return fmt.Sprintf("cannot run %q: %v", e.Command, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// Missing reports whether the command, or its interpreter, was not found.
func (e *StartError) Missing() bool {
	return errors.Is(e.Err, syscall.ENOENT) || errors.Is(e.Err, syscall.ENOTDIR)
}

// Refused reports whether the command was found but cannot be executed, as opposed to a
// system that has no room for another process.
func (e *StartError) Refused() bool {
	switch e.Err {
	case syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE:
		return false
	}
	return !e.Missing()
}

// forkExec is fork(2) and execve(2).
func (c *Command) forkExec(path string, argv, env []string) (pid int, err error) {
	attr := &syscall.ProcAttr{
		Dir:   leaveDirectory(),
		Env:   env,
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: !c.SameGroup, Foreground: !c.SameGroup && !c.Background && foreground()},
	}
	if c.Background {
		if null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			defer unix.Close(null)
			attr.Files[0] = uintptr(null)
		}
	}
	if c.Session {
		// Given CAP_SYS_ADMIN, Go's Setctty takes the terminal even from another session.
		// So Setctty is used for a terminal just released alone; else the second stage
		// takes the terminal.
		attr.Sys = &syscall.SysProcAttr{Setsid: true, Setctty: c.released != 0 && argv[0] != stageName}
	}
	fork := func() { pid, err = syscall.ForkExec(path, argv, attr) }
	sigcatch.Unblocked(fork)
	if err != nil && (attr.Sys.Foreground || attr.Sys.Setctty) {
		attr.Sys.Foreground, attr.Sys.Setctty = false, false // the terminal may no longer be ours
		sigcatch.Unblocked(fork)
	}
	if err != nil {
		unix.Chdir(attr.Dir) // for a further try
	}
	return pid, err
}

// execvp calls exec with one path after the other, as execvp(3) does, until a call
// succeeds, and returns nil or a *StartError. A file of a format unknown to the kernel is a script for the shell.
func execvp(argv, env []string, exec func(path string, argv []string) error) error {
	failed := &StartError{Command: argv[0], Err: syscall.ENOENT}
	for _, path := range candidates(argv[0], env) {
		if unix.Access(path, unix.F_OK) == unix.ENOENT {
			continue // saves a fork for every directory of PATH
		}
		failed.found = true
		err := exec(path, argv)
		if err == syscall.ENOEXEC {
			err = exec("/bin/sh", append([]string{"sh", path}, argv[1:]...))
		}
		switch err {
		case nil:
			return nil
		case syscall.EACCES:
			failed.Err = err // reported unless another path succeeds
		case syscall.ENOENT, syscall.ENOTDIR, syscall.ESTALE, syscall.ENODEV, syscall.ETIMEDOUT:
			// As execvp(3) does, try the next directory.
			if failed.Err == syscall.ENOENT {
				failed.Err = err // more specific than ENOENT
			}
		default:
			failed.Err = err
			return failed
		}
	}
	return failed
}

// defaultPath is the search path of execvp(3) without PATH.
const defaultPath = "/bin:/usr/bin"

// candidates returns the paths that execvp(3) would try for file, in order. An empty entry
// of PATH is the working directory.
func candidates(file string, env []string) []string {
	switch {
	case file == "":
		return nil
	case strings.Contains(file, "/"):
		return []string{file}
	}
	search := defaultPath
	for _, entry := range env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			search = path
			break // the first entry counts, as in getenv(3)
		}
	}
	var paths []string
	for dir := range strings.SplitSeq(search, ":") {
		if dir != "" {
			dir = strings.TrimSuffix(dir, "/") + "/"
		}
		paths = append(paths, dir+file)
	}
	return paths
}
