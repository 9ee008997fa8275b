package init_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// output runs a program with argv and env exactly as given (os/exec would drop duplicate
// variables), wants success, and returns both output streams.
func output(t *testing.T, path string, env []string, argv ...string) string {
	t.Helper()
	r, w, err := os.Pipe()
	testutil.Must(r, err)
	defer r.Close()
	null := testutil.Must(os.Open(os.DevNull))
	defer null.Close()
	p := testutil.Must(os.StartProcess(path, argv, &os.ProcAttr{Env: env, Files: []*os.File{null, w, w}}))
	w.Close()
	out := testutil.Must(io.ReadAll(r))
	if state := testutil.Must(p.Wait()); !state.Success() {
		t.Fatalf("%q: %v: %s", argv, state, out)
	}
	return string(out)
}

// script runs a script of bash with a directory D and another variable.
func script(t *testing.T, dir, variable, text string) string {
	t.Helper()
	box.Needs(t, "bash")
	return output(t, "/bin/bash", []string{"PATH=" + os.Getenv("PATH"), "D=" + dir, variable}, "bash", "-c", "cd $D; "+text)
}

// TestInherits: limits, attributes, descriptors and working directories of a command are the
// same with and without lameduck. Each script runs twice: with x empty, and with x as the
// lameduck command line.
func TestInherits(t *testing.T) {
	for name, text := range map[string]string{
		"soft limit of files": "ulimit -Sn 123; exec $x bash -c 'ulimit -Sn; ulimit -Hn'",
		"other limits":        "ulimit -c 0; ulimit -s 4096; exec $x bash -c 'ulimit -a'",
		"umask":               "umask 027; exec $x bash -c umask",
		"niceness":            "exec nice -n 5 $x nice",
		"descriptors":         "exec 7</dev/null 9>/dev/zero; exec $x ls -l --time-style=+ /proc/self/fd | sed 's/.* \\([0-9]* ->\\)/\\1/' | sed 's/:.*//' | grep -v '/proc/'",
		"high descriptors":    "exec 200</dev/null; exec $x readlink /proc/self/fd/200",
		"arguments":           "exec $x printf '%s|' -d 1 -- --help 'a b' '' -",
		"relative path":       "exec ${x:-env} ./script",
		"path of the parent":  "cd sub; exec ${x:-env} ../script",
		"second stage":        "cd sub; trap '' INT; exec ${x:-env} ../script",
		"relative PATH":       "PATH=.:$PATH exec ${x:-env} script",
		"no directory":        "cd sub; rmdir $PWD; exec ${x:-env} readlink /proc/self/cwd",
		"linked directory":    "cd -P link; exec ${x:-env} readlink /proc/self/cwd",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text = "mkdir -p sub; ln -sfn sub link; printf '#!/bin/sh\necho $0 $PWD\nreadlink /proc/self/cwd\n' >script; chmod +x script; " + text
			without, with := script(t, dir, "x=", text), script(t, dir, "x="+box.Binary+" --", text)
			if with != without || without == "" {
				t.Errorf("without: %s\nwith:    %s", without, with)
			}
		})
	}
}

// TestInheritsExactly: all entries of the environment and all arguments pass unchanged, under
// every name and through the second stage: a second entry of one name, entries without "=",
// empty ones, bytes other than UTF-8, and the variables of Go's runtime.
func TestInheritsExactly(t *testing.T) {
	env := []string{"A=1", "B", "A=2", "", "=x", "A=1", "C=caf\xe9", "PATH=/usr/bin:/bin", "PATH=/none", "LAMEDUCK_B",
		"GOGC=1", "GOGC=2", "GOTRACEBACK", "GOMAXPROCS=3",
		"GODEBUG=gctrace=1,schedtrace=1", "GOMEMLIMIT=1MiB", "GOTRACEBACK=crash", "GOMEMLIMIT_MIB=9", "\x01OGC=5", "\x01=",
		"LAST="}
	var every []byte
	for c := range 255 {
		every = append(every, byte(c+1))
	}
	words := []string{"%s|", "caf\xe9", "\xff\xfe", string(every), "", "\xc3"}
	for name, call := range map[string][]string{"lameduck": nil, "tini": {"--"}, "dumb-init": nil, "catatonit": {"--"},
		"lameduck-stage": {"99", "0", "200", "0", box.Binary}} {
		call = append([]string{name}, call...)
		got := output(t, box.Binary, env, append(call, "cat", "/proc/self/environ")...)
		if want := strings.Join(env, "\x00") + "\x00"; got != want {
			t.Errorf("%s: environment\n%q\nwant\n%q", name, got, want)
		}
		got = output(t, box.Binary, env, append(append(call, "printf"), words...)...)
		if want := strings.Join(words[1:], "|") + "|"; got != want {
			t.Errorf("%s: arguments\n%q\nwant\n%q", name, got, want)
		}
	}
}

// TestLeavesDirectoryFirst: lameduck changes to / before the fork, so that the command never
// sees lameduck in another directory. Where the path of the working directory is gone, the
// change follows the fork, because the command needs the directory.
func TestLeavesDirectoryFirst(t *testing.T) {
	box.Needs(t, "strace")
	for before, want := range map[string]string{"": "chdir clone ", "mkdir x; cd x; rmdir $PWD; ": "clone chdir "} {
		got := script(t, t.TempDir(), "L="+box.Binary, before+`strace -o $D/trace -e trace=chdir,clone,clone3,vfork $L true
			sed -n 's/^chdir("\/").*/chdir/p; s/^vfork.*\|.*CLONE_VFORK.*/clone/p' $D/trace | uniq | head -n 2 | tr '\n' ' '`)
		if got != want {
			t.Errorf("%s: system calls %s, want %s", before, got, want)
		}
	}
}
