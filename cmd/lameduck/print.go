package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// The exit codes of lameduck itself, as in env(1) and docker-run(1). All other codes are
// the command's own, or 128+n.
const (
	exitFailed   = 125 // lameduck itself failed, or the flags are wrong
	exitRefused  = 126 // the command was found but could not be executed
	exitNotFound = 127
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
			return fmt.Errorf("cannot write to standard output: %w", err) // of standard error nobody could read
		}
		rest = rest[max(n, 0):]
	}
	return nil
}

// version is set by the linker; see the Makefile.
var version = "dev"

// versionLine is the answer to --version. A plain build, without the linker flags of the
// Makefile, says so, with the version that the go command has recorded.
func versionLine() string {
	if !shim.PlainBuild() {
		return "lameduck version " + version + "\n"
	}
	return "lameduck version " + cli.RecordedVersion(version) + ", a plain build (see docs/install.md)\n"
}

// fail prints an error and returns the exit code for it.
func fail(err error) int { return failIn(false, err) }

// failIn is fail with a choice of the form.
func failIn(inJSON bool, err error) int {
	code := exitFailed
	var start *shim.StartError
	switch {
	case !errors.As(err, &start):
	case start.Missing():
		code, err = exitNotFound, fmt.Errorf("%w%s", err, hintAbout(start.Command))
	case start.Refused():
		code = exitRefused
	}
	shim.Say(err.Error(), inJSON)
	return code
}

// hintAbout returns what may have been meant by a command that does not exist, or "".
func hintAbout(command string) string {
	switch meant := cli.Meant(command); {
	case meant != "":
		return "; did you mean lameduck " + meant + "?"
	case strings.Contains(command, " "):
		return "; no shell splits it into words: make each word an item of its own"
	}
	return ""
}
