package main

import (
	"fmt"
	"syscall"

	"github.com/lameduck-init/lameduck/shim"
)

// What was asked for (--help, --version) goes to standard output, or to where an init
// that lameduck stands in for prints it. Everything else is one line on standard error
// that begins with lameduck's name: standard output belongs to the command.

// answer prints what was asked for and returns the exit code. os.Stdout is of no use: its
// writes end a program if the reader is gone and os/signal was not asked for PIPE.
func answer(text string) int { return answerOn(syscall.Stdout, text) }

func answerOn(fd int, text string) int {
	if err := write(fd, text); err != nil {
		return fail(err)
	}
	return 0
}

func write(fd int, text string) error {
	for rest := []byte(text); len(rest) > 0; {
		n, err := syscall.Write(fd, rest)
		if err != nil && err != syscall.EINTR {
			return fmt.Errorf("cannot write to standard output: %w", err)
		}
		rest = rest[max(n, 0):]
	}
	return nil
}

// complain prints an error on one line, whatever the user's words in the error are. It
// does not wait for a reader.
func complain(err error, inJSON bool) { shim.Say(err.Error(), inJSON) }
