package pages

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shell is a shell in namespaces of its own, under lameduck.
type shell struct {
	t     *testing.T
	dir   string
	pod   bool
	stdin io.WriteCloser
	lines chan string
	got   []string
	marks int
}

// aboard makes kubectl exec run the command beside the shell, which is in the pod.
const aboard = `kubectl() {
	[ "$1" = exec ] || { echo "no rule for kubectl $1"; return; }
	while [ "$1" != -- ]; do shift; done
	shift
	program=${1##*/}
	shift
	case $1 in
	watch) $program "$@" | head -n 1 ;;
	*) $program "$@" ;;
	esac
}
`

// start starts a shell, in a pod beside a server under lameduck.
func start(t *testing.T, pod bool) *shell {
	t.Helper()
	inside := []string{"lameduck", "--", "sh"}
	if pod {
		inside = []string{"lameduck", "--until=quiet", "--grace-period=60", "--", "sh", "-c", "exec 3<&0; sh <&3 & exec myserver :8080"}
	}
	cmd := command("lameduck", nil)
	cmd.Path, _ = exec.LookPath("unshare")
	cmd.Args = append(strings.Fields("unshare --user --map-root-user --pid --fork --kill-child --mount-proc --net"), inside...)
	if cmd.Path == "" {
		t.Skip("unshare is not installed")
	}
	if out, err := exec.Command(cmd.Path, append(cmd.Args[1:7:7], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no namespaces: %v: %s", err, out)
	}
	cmd.Dir = t.TempDir()
	s := &shell{t: t, dir: cmd.Dir, pod: pod, lines: make(chan string, 1000)}
	s.stdin, _ = cmd.StdinPipe()
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); out.Close() })
	go func() {
		defer close(s.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	fmt.Fprint(s.stdin, aboard)
	if pod {
		s.until("ready ")
		s.got = nil
	}
	return s
}

// has writes a file into the shell's directory.
func (s *shell) has(name string, text []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), text, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// do types a command and waits for the end of the command, or until its server is ready.
func (s *shell) do(command string) {
	s.t.Helper()
	s.marks++
	mark := fmt.Sprintf("-- %d --", s.marks)
	fmt.Fprintln(s.stdin, command)
	if strings.HasSuffix(command, "&") {
		s.until("ready ")
		return
	}
	// In one write, so that no line of lameduck comes between.
	fmt.Fprintln(s.stdin, `printf '\n%s\n' '`+mark+"'")
	if s.until(mark) {
		s.got = s.got[:len(s.got)-1]
		if last := len(s.got) - 1; s.got[last] == "" {
			s.got = s.got[:last]
		}
	}
}

// until reads up to a line with a beginning, or to the end of the output, and reports
// whether the line came.
func (s *shell) until(beginning string) bool {
	s.t.Helper()
	found, more := false, true
	for deadline := time.After(patience); !found && more; {
		more = s.read(deadline)
		if more {
			found = strings.HasPrefix(s.got[len(s.got)-1], beginning)
		}
	}
	return found
}

// prints reports whether the whole output is want. A pod, which goes on when the shell has
// ended, may print the rest until patience is over.
func (s *shell) prints(want []string) bool {
	s.t.Helper()
	s.stdin.Close()
	for deadline := time.After(patience); !s.pod || !matches(want, s.got); {
		if !s.read(deadline) {
			break
		}
	}
	return matches(want, s.got)
}

// read waits for a line and reports whether a line came.
func (s *shell) read(deadline <-chan time.Time) bool {
	s.t.Helper()
	select {
	case line, more := <-s.lines:
		if more {
			s.got = append(s.got, line)
		}
		return more
	case <-deadline:
		s.t.Fatalf("no line after\n%s", strings.Join(s.got, "\n"))
		return false
	}
}
