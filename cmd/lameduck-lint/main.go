package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

const help = `lameduck-lint reads Kubernetes manifests and Dockerfiles, and says what would go
wrong at a stop, one line per finding:

  FILE:LINE: what goes wrong; what would be right [RULE]

usage: lameduck-lint [flags] PATH...

  PATH                a file; a folder, of which it reads *.yaml, *.yml, *.json,
                      Dockerfile*, *.Dockerfile and Containerfile*; or -, which
                      is standard input
  --format=FORMAT     text, json (one object per line) or github
                      (workflow commands) [text]
  --rules             list the rules
  --version           print the version
  -h, --help          print this help

A comment on the line, or the line above, silences a rule:

  # lameduck-lint: ignore=RULE,...

Exit codes: 0 nothing found; 1 something found; 2 a wrong flag, or a file that
cannot be read.
`

// The exit codes.
const (
	exitClean = iota
	exitFound
	exitFailed
)

// options is the command line.
type options struct {
	Format  string `default:"text"`
	Rules   bool
	Version bool
	Help    bool     `short:"h"`
	Paths   []string `arg:"" optional:""`
}

func main() {
	signal.Reset() // package shim catches all signals from its init
	os.Exit(lint(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// lint is the whole program.
func lint(args []string, in io.Reader, out, errs io.Writer) int {
	found, err := run(args, in, out)
	switch {
	case err != nil:
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintln(errs, "lameduck-lint:", line)
		}
		return exitFailed
	case found:
		return exitFound
	}
	return exitClean
}

// flagError returns kong's error about a flag in lameduck's words.
func flagError(err error) string {
	text, near, suggested := strings.Cut(err.Error(), ", did you mean ")
	flag, _, valueMissing := strings.Cut(text, ": expected ")
	switch {
	case valueMissing:
		return flag + " needs a value: give " + flag + "=VALUE"
	case suggested && strings.HasPrefix(near, `"--`):
		return text + ": did you mean " + strings.ReplaceAll(near, `"`, "")
	}
	return text
}

// run lints the files of the command line, and reports whether it found anything. A file
// that cannot be read is an error, but the other files are linted.
func run(args []string, in io.Reader, out io.Writer) (found bool, err error) {
	var o options
	if _, err := kong.Must(&o, kong.Name("lameduck-lint"), kong.NoDefaultHelp()).Parse(args); err != nil {
		return false, fmt.Errorf("%s (lameduck-lint --help lists the flags)", flagError(err))
	}
	format, ok := formats[o.Format]
	switch {
	case o.Help:
		_, err = io.WriteString(out, help)
		return false, err
	case o.Version:
		_, err = fmt.Fprintln(out, "lameduck-lint version", versionOf(version))
		return false, err
	case o.Rules:
		for _, r := range rules {
			fmt.Fprintf(out, "%-16s %s\n", r.name, r.says)
		}
		return false, nil
	case !ok:
		return false, fmt.Errorf("invalid format %q: give text, json or github", o.Format)
	case len(o.Paths) == 0:
		return false, errors.New("nothing to read: give files, folders, or - for standard input")
	}
	files, err := collect(o.Paths)
	if err != nil {
		return false, err
	}
	var failed []error
	for _, file := range files {
		list, err := lintFile(file, slices.Contains(o.Paths, file), in)
		if err == nil {
			err = printAll(out, format, list)
		}
		failed = append(failed, err)
		found = found || len(list) > 0
	}
	return found, errors.Join(failed...)
}
