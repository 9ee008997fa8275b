package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
)

const help = `lameduck-lint reads Kubernetes manifests, Dockerfiles, Compose files, and ECS task
definitions and Nomad jobs in JSON, and says what would go wrong at a stop, one
line per finding:

  FILE:LINE: what goes wrong; what would be right [RULE]

usage: lameduck-lint [flags] PATH...

  PATH                a file; a folder, of which it reads *.yaml, *.yml, *.json,
                      Dockerfile*, *.Dockerfile and Containerfile*; or -, which
                      is standard input; all others have to be regular files
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
	Format  string `default:"text" enum:"text,json,github"`
	Rules   bool
	Version bool
	Help    bool     `short:"h"`
	Paths   []string `arg:"" optional:""`
}

// version is set by the linker in a release.
var version = ""

func main() {
	os.Exit(lint(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// lint is the whole program.
func lint(args []string, in io.Reader, out, errs io.Writer) int {
	var o options
	_, err := kong.Must(&o, kong.NoDefaultHelp()).Parse(args)
	text, code := "", exitClean
	switch {
	case err != nil:
		err = fmt.Errorf("%w (lameduck-lint --help lists the flags)", err)
	case o.Help:
		text = help
	case o.Version:
		text = "lameduck-lint version " + cmp.Or(version, cli.RecordedVersion("dev")) + "\n"
	case o.Rules:
		for _, r := range rules {
			if line := fmt.Sprintf("%-16s %s\n", r["name"], r["finds"]); !strings.HasSuffix(text, line) {
				text += line
			}
		}
	case len(o.Paths) == 0:
		err = errors.New("nothing to read: give files, folders, or - for standard input")
	default:
		if text, err = lintFiles(o.Paths, formats[o.Format], in, errs); text != "" {
			code = exitFound
		}
	}
	if _, failure := io.WriteString(out, text); failure != nil {
		err = errors.Join(err, fmt.Errorf("cannot write to standard output: %w", failure))
	}
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintln(errs, "lameduck-lint:", line)
		}
		return exitFailed
	}
	return code
}

// where is the template of an object and a container.
const where = "{{with .Object}}{{.}}{{with $.Container}}, container {{.}}{{end}}: {{end}}"

// formats are the templates of a finding.
var formats = map[string]string{
	"text": "{{.File}}:{{.Line}}: " + where + "{{.Text}} [{{.Rule}}]\n",
	"json": "{{json .}}\n",
	// GitHub's workflow commands, which annotate the lines of a change.
	"github": "::warning file={{escape .File}},line={{.Line}},title={{.Rule}}::" + where + "{{percent .Text}}\n",
}

// lintFiles returns the findings for the files in paths. A file that cannot be read is an
// error, but the other files are linted. One that is no manifest is noted.
func lintFiles(paths []string, format string, in io.Reader, notes io.Writer) (text string, err error) {
	files, err := collect(paths)
	failed := []error{err}
	for _, file := range files {
		found, err := lintFile(file, slices.Contains(paths, file), in)
		if errors.Is(err, errNoKind) && file != stdin {
			fmt.Fprintln(notes, "lameduck-lint:", err)
		} else {
			failed = append(failed, err)
		}
		for _, f := range found {
			text += fill(format, f)
		}
	}
	return text, errors.Join(failed...)
}
