package proc

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// StartError is a command that could not be started.
type StartError struct {
	Command string
	Err     error // a syscall.Errno
	found   bool  // there was such a file
}

// Error says what was to be run and why it was not.
func (e *StartError) Error() string {
	if e.found && e.Err == syscall.ENOENT {
		return fmt.Sprintf("cannot run %q: the interpreter that it names was not found", e.Command)
	}
	return fmt.Sprintf("cannot run %q: %v", e.Command, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// Missing reports whether the command, or its interpreter, was not found.
func (e *StartError) Missing() bool {
	return errors.Is(e.Err, syscall.ENOENT) || errors.Is(e.Err, syscall.ENOTDIR)
}

// Refused reports whether it was found but could not be executed, as opposed
// to a system that has no room for another process.
func (e *StartError) Refused() bool {
	switch e.Err {
	case syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE:
		return false
	}
	return !e.Missing()
}

// Start runs argv in a process group of its own, the terminal's foreground one
// if we were that, with our standard streams, every inherited descriptor, and
// env as it is given. The program is found as execvp(3) finds it, along env's
// PATH. An error is a *StartError.
//
// Go's fork puts back what Go itself changed: the soft limit of open files,
// the signal mask and the dispositions.
func Start(argv, env []string) (pid int, err error) {
	failed := &StartError{Command: argv[0], Err: syscall.ENOENT}
	for _, path := range candidates(argv[0], env) {
		if unix.Access(path, unix.F_OK) == unix.ENOENT {
			continue // spares a fork for every folder of PATH
		}
		failed.found = true
		pid, err := fork(path, argv, env)
		switch {
		case err == nil:
			return pid, nil
		case err == syscall.EACCES:
			failed.Err = err // remembered, should none of the others do
		case !keepLooking(err):
			failed.Err = err
			return 0, failed
		case failed.Err == syscall.ENOENT:
			failed.Err = err // what is no folder says more
		}
	}
	return 0, failed
}

// keepLooking lists the errors after which execvp(3) tries the next folder.
func keepLooking(err error) bool {
	switch err {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ESTALE, syscall.ENODEV, syscall.ETIMEDOUT:
		return true
	}
	return false
}

// fork runs one path. A file that the kernel does not take for a program is a
// script for the shell, as in execvp(3).
func fork(path string, argv, env []string) (pid int, err error) {
	pid, err = forkExec(path, argv, env)
	if err == syscall.ENOEXEC {
		return forkExec("/bin/sh", append([]string{"sh", path}, argv[1:]...), env)
	}
	return pid, err
}

func forkExec(path string, argv, env []string) (pid int, err error) {
	attr := &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Foreground: foreground()},
	}
	pid, err = syscall.ForkExec(path, argv, attr)
	if err != nil && attr.Sys.Foreground && isTerminalError(err) {
		attr.Sys.Foreground = false
		pid, err = syscall.ForkExec(path, argv, attr)
	}
	return pid, err
}

// foreground reports whether standard input is a terminal whose foreground
// process group is ours to hand over.
func foreground() bool {
	pgrp, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil && pgrp == unix.Getpgrp()
}

// isTerminalError lists what a terminal may answer to tcsetpgrp(3) when it is
// not, or no longer, our controlling one.
func isTerminalError(err error) bool {
	return err == syscall.ENOTTY || err == syscall.ENXIO || err == syscall.EIO || err == syscall.EBADF || err == syscall.EPERM
}

// IsTerminal reports whether fd is a terminal.
func IsTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}
