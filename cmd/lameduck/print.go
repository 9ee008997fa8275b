package main

import (
	"fmt"
	"syscall"
)

// Answers (--help, --version) go to standard output, or to the descriptor of the init that
// lameduck replaces. All other output is one line on standard error that begins with
// lameduck's name: standard output belongs to the command.

// answer prints text and returns the exit code. Writes to os.Stdout would end the program
// if the reader is gone, unless os/signal was asked for PIPE.
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
			name := map[int]string{syscall.Stdout: "standard output", syscall.Stderr: "standard error"}[fd]
			return fmt.Errorf("cannot write to %s: %w", name, err)
		}
		rest = rest[max(n, 0):]
	}
	return nil
}
