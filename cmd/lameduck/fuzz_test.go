package main

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// Words and variables are as execve(2) allows: any bytes but 0, which separates words and
// variables in the corpus.

func wordsOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

func textOf(words ...string) string { return strings.Join(words, "\x00") }

// FuzzCommandLine: any words and variables give a configuration that --explain accepts, or
// a single line and 125.
func FuzzCommandLine(f *testing.F) {
	odd := textOf("LAMEDUCK_DELAY=2", "KUBERNETES_SERVICE_HOST=x", "LAMEDUCK_A\nB=1", "LAMEDUCK_GROUP=no",
		"LAMEDUCK_PORT=1", "=")
	for _, file := range []string{"testdata/refused.txt", "testdata/console.txt"} {
		for _, s := range sessions(f, file) {
			f.Add(textOf(s.args...), textOf(s.env...))
			f.Add(textOf(s.args...), odd)
		}
	}
	flags := envFlags(f)
	for flag, variable := range flags {
		for _, value := range []string{"x", "0", "1,5", "TERM:", "'a"} {
			f.Add("--"+flag+"="+value, "")
			f.Add("-uquiet\x00x", variable+"="+value)
		}
	}
	streams := newStreams(f)
	f.Fuzz(func(t *testing.T, args, env string) {
		words, variables := wordsOf(args), wordsOf(env)
		if len(words) > 0 && words[0] == "hold" {
			explainsHook(t, streams, words, variables)
		} else {
			explains(t, streams, words, variables)
		}
	})
}

// explains checks that --explain accepts a command line if the command line is valid.
func explains(t *testing.T, streams streams, words, variables []string) {
	words = append([]string{"--explain"}, words...)
	line, err := cli.ParseRun(words, variables)
	asks := err == nil && (line.Help || line.HelpAll || line.Version)
	if err == nil && !asks && !line.Explain {
		return // --explain=false: the command would run
	}
	var cfg shim.Config
	if err == nil && !asks {
		cfg, err = line.Config()
		if err == nil {
			_, err = shim.Review(cfg)
		}
	}
	code, out, errOut := streams.of(func() int { return lameduck("lameduck", words, variables) })
	switch {
	case err != nil && (code != exitFailed || out != "" || !isOneLine(errOut)):
		t.Errorf("refused (%v): left with %d, said %q and %q", err, code, out, errOut)
	case err == nil && (code != 0 || out == "" || asks && errOut != ""):
		t.Errorf("taken: left with %d, said %q and %q", code, out, errOut)
	case err == nil && len(cfg.Warnings) > 0 && errOut == "":
		t.Errorf("no word of %q", cfg.Warnings)
	}
}

// explainsHook is explains for a preStop hook.
func explainsHook(t *testing.T, streams streams, words, variables []string) {
	line, err := cli.ParseHold(append([]string{"--explain"}, words[1:]...), variables)
	if err == nil && !line.Help {
		if _, faults := line.Tolerant(); len(faults) > 0 {
			err = faults[0]
		}
	}
	if err == nil && !line.Help && !line.Explain {
		return // --explain=false: a hold would take place
	}
	words = append([]string{"--explain"}, words...)
	code, out, errOut := streams.of(func() int { return lameduck("lameduck", words, variables) })
	if err != nil && (code != exitFailed || out != "" || !isOneLine(errOut)) || err == nil && (code != 0 || out == "") {
		t.Errorf("a hook (%v): left with %d, said %q and %q", err, code, out, errOut)
	}
}

// isOneLine reports whether said is one line of lameduck.
func isOneLine(said string) bool {
	return strings.Index(said, "\n") == len(said)-1 && (strings.HasPrefix(said, "lameduck: ") || strings.HasPrefix(said, `{"schema":`))
}

// streams are files that replace standard output and standard error.
type streams [2]int

func newStreams(f *testing.F) (s streams) {
	for i := range s {
		fd, err := unix.MemfdCreate("stream", unix.MFD_CLOEXEC)
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { unix.Close(fd) })
		s[i] = fd
	}
	return s
}

// of returns the exit code of call, and the output. The streams are restored even after a panic,
// whose text would be lost otherwise.
func (s streams) of(call func() int) (code int, out, errOut string) {
	var said [2]string
	func() {
		for i, fd := range s {
			unix.Ftruncate(fd, 0)
			unix.Seek(fd, 0, 0)
			before, _ := unix.FcntlInt(uintptr(i+1), unix.F_DUPFD_CLOEXEC, 3)
			unix.Dup3(fd, i+1, 0)
			defer func() { unix.Dup3(before, i+1, 0); unix.Close(before) }()
		}
		code = call()
	}()
	for i, fd := range s {
		end, _ := unix.Seek(fd, 0, 2)
		text := make([]byte, end)
		unix.Pread(fd, text, 0)
		said[i] = string(text)
	}
	return code, said[0], said[1]
}
