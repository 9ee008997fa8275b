package main

import (
	"fmt"
	"syscall"

	"github.com/lameduck-init/lameduck/shim"
)

// How we print: what was asked for (--help, --version) goes to standard output,
// unless an init that we stand in for prints it elsewhere. All else is one line
// on standard error and begins with our name: standard output is the command's.

// tellOn prints what was asked for. Not with os.Stdout, whose writes end a program
// where the reader is gone and nobody has asked os/signal for PIPE.
func tellOn(onStderr bool, text string) int {
	fd := syscall.Stdout
	if onStderr {
		fd = syscall.Stderr
	}
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

// complain prints an error on one line, whatever words of the user the error
// repeats. Where nobody reads it does not wait.
func complain(err error, inJSON bool) { shim.Say(err.Error(), inJSON) }

// asksJSON reports whether the environment asks for JSON, for errors that come before
// the flags and variables have been read.
func asksJSON(env []string) bool {
	value, _ := lookup(env, twin("log-format"))
	json, err := parseFormat(value)
	return err == nil && json
}

// nearest is the candidate that needs the fewest edits to become name.
func nearest(name string, candidates []string) (best string) {
	fewest := -1
	for _, c := range candidates {
		if n := edits(name, c); fewest < 0 || n < fewest {
			best, fewest = c, n
		}
	}
	return best
}

// edits is the Levenshtein distance, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
