package shim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// What is wanted of lameduck under an init's name is wanted of that init too,
// and where lameduck differs on purpose the test says why. With -rivals the
// tests run side by side with the inits themselves, where those are installed;
// not always, since they have races of their own.
var rivals = flag.Bool("rivals", false, "run the tests of the drop-in names on tini, dumb-init and catatonit too")

// eachInit runs a test on lameduck under an init's name, and on the init.
func eachInit(t *testing.T, name string, test func(t *testing.T, init string)) {
	t.Run(name+" by lameduck", func(t *testing.T) {
		t.Parallel()
		test(t, linkAs(t, name))
	})
	t.Run(name+" itself", func(t *testing.T) {
		t.Parallel()
		if !*rivals {
			t.Skip("only with -rivals")
		}
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(name, " is not installed")
		}
		test(t, path)
	})
}

// linkAs is lameduck under another name.
func linkAs(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(binary, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// isOurs reports whether an init is such a link.
func isOurs(init string) bool {
	path, err := filepath.EvalSymlinks(init)
	return err == nil && path == binary
}

// bootAs is boot with lameduck under another name.
func bootAs(t *testing.T, name string, env []string, args ...string) *box {
	t.Helper()
	return bootInit(t, linkAs(t, name), env, args...)
}

// bootInit is boot with any init.
func bootInit(t *testing.T, init string, env []string, args ...string) *box {
	t.Helper()
	if noNamespaces != "" {
		t.Skip("no namespaces: ", noNamespaces)
	}
	words := self("stage", append([]string{init}, args...)...)
	return launch(t, env, syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}, words...)
}

// bootCatch is an init as PID 1 whose command catches signals, when it does.
func bootCatch(t *testing.T, init string, flags ...string) *box {
	t.Helper()
	b := bootInit(t, init, nil, append(flags, self("catch")...)...)
	b.out.wait(t, "ready")
	return b
}

// blocks is what the first thread of a process blocks.
func blocks(pid int) sig.Set {
	bits, _ := strconv.ParseUint(status(pid, "SigBlk"), 16, 64)
	return sig.Set(bits)
}

// launch starts a program between pipes, its environment being PATH and env.
func launch(t *testing.T, env []string, attr syscall.SysProcAttr, words ...string) *box {
	t.Helper()
	b := &box{t: t, cmd: exec.Command(words[0], words[1:]...)}
	b.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	b.cmd.SysProcAttr = &attr
	b.stdin = must(b.cmd.StdinPipe())
	b.out, b.err = newLines(must(b.cmd.StdoutPipe())), newLines(must(b.cmd.StderrPipe()))
	b.start = time.Now()
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go b.out.read()
	go b.err.read()
	t.Cleanup(func() { b.cmd.Process.Kill() })
	return b
}

// shape is a way to call an init.
type shape struct {
	init, call string // a shell's command line; $I is the init, $D a folder of odd programs
	code       int
	out        string // standard output; "tini…" for what begins with tini
	ours       *ours
}

// ours is what lameduck does where it differs on purpose.
type ours struct {
	code int
	out  string
	why  string
}

const (
	superset = "the init only refuses it"
	permutes = "the init takes its command's flags for its own"
	onStderr = "standard output is the command's"
	bug      = "a bug of the init"
)

var shapes = []shape{
	{"tini", `$I -- sh -c 'exit 3'`, 3, "", nil},
	{"tini", `$I -- sh -c 'kill -9 $$'`, 137, "", nil},
	{"tini", `$I -- sh -c 'kill -64 $$'`, 192, "", nil},
	{"tini", `$I echo x`, 0, "x\n", nil},
	{"tini", `$I -- echo -- x`, 0, "-- x\n", nil},
	{"tini", `$I echo -- x`, 0, "x\n", nil},
	{"tini", `$I sh -- -c 'exit 3'`, 3, "", nil},
	{"tini", `$I -s -g -w echo -- -n x`, 0, "x", nil},
	{"tini", `$I -sgw -- echo x`, 0, "x\n", nil},
	{"tini", `$I ls -d /`, 1, "", &ours{0, "/\n", permutes}},
	{"tini", `$I env -h`, 0, "tini…", &ours{125, "", permutes}},
	{"tini", `$I echo x -s`, 0, "x\n", &ours{0, "x -s\n", permutes}},
	{"tini", `$I -- -- true`, 127, "", nil},
	{"tini", `$I -- --version`, 127, "", nil},
	{"tini", `$I - true`, 127, "", nil},
	{"tini", `$I`, 1, "", nil},
	{"tini", `$I --`, 1, "", nil},
	{"tini", `$I -s`, 1, "", nil},
	{"tini", `$I -x true`, 1, "", nil},
	{"tini", `$I --frob true`, 1, "", nil},
	{"tini", `$I --version`, 0, "tini version 0.19.0…", nil},
	{"tini", `$I --version true`, 1, "", &ours{0, "tini version 0.19.0…", superset}},
	{"tini", `$I -h`, 0, "…", nil},
	{"tini", `$I -h true`, 0, "…", nil},
	{"tini", `$I -l`, 0, "…", nil},
	{"tini", `$I --help`, 1, "", &ours{0, "usage…", superset}},
	{"tini", `$I -e 7 -- sh -c 'exit 7'`, 0, "", nil},
	{"tini", `$I -e7 -- sh -c 'exit 7'`, 0, "", nil},
	{"tini", `$I -e ' 7' -- sh -c 'exit 7'`, 0, "", nil},
	{"tini", `$I -e +7 -- sh -c 'exit 7'`, 0, "", nil},
	{"tini", `$I -e 007 -- sh -c 'exit 7'`, 0, "", nil},
	{"tini", `$I -e '' -- sh -c 'exit 7'`, 7, "", nil},
	{"tini", `$I -e 7 -e 8 -e 8 -- sh -c 'exit 8'`, 0, "", nil},
	{"tini", `$I -e 7 -- sh -c 'exit 8'`, 8, "", nil},
	{"tini", `$I -e 143 -- sh -c 'kill $$'`, 0, "", nil},
	{"tini", `$I -e 127 -- no-such-program`, 0, "", &ours{127, "", "a command that never ran has no exit code"}},
	{"tini", `$I -e 256 true`, 1, "", nil},
	{"tini", `$I -e -1 true`, 1, "", nil},
	{"tini", `$I -e abc true`, 1, "", nil},
	{"tini", `$I -e 7abc true`, 1, "", nil},
	{"tini", `$I -e 0x7 true`, 1, "", nil},
	{"tini", `$I -e '7 ' true`, 1, "", &ours{0, "", superset}},
	{"tini", `$I -e`, 1, "", nil},
	{"tini", `$I -p SIGTERM true`, 0, "", nil},
	{"tini", `$I -p SIGKILL true`, 0, "", nil},
	{"tini", `$I -p TERM true`, 1, "", &ours{0, "", superset}},
	{"tini", `$I -p sigterm true`, 1, "", &ours{0, "", superset}},
	{"tini", `$I -p SIGRTMIN true`, 1, "", &ours{0, "", superset}},
	{"tini", `$I -p NOSUCH true`, 1, "", nil},
	{"tini", `$I -p '' true`, 1, "", nil},
	{"tini", `$I -p`, 1, "", nil},
	{"tini", `$I -vvv true`, 0, "[INFO …", &ours{0, "", onStderr}},
	{"tini", `TINI_VERBOSITY=3 $I true`, 0, "[INFO …", &ours{0, "", onStderr}},
	{"tini", `TINI_VERBOSITY=0 $I -vvv true`, 0, "", nil},
	{"tini", `TINI_VERBOSITY= $I -vvv true`, 0, "", nil},
	{"tini", `TINI_VERBOSITY=x $I -vvv true`, 0, "", nil},
	{"tini", `TINI_SUBREAPER=0 TINI_KILL_PROCESS_GROUP= $I sh -- -c 'echo $TINI_SUBREAPER ${TINI_KILL_PROCESS_GROUP-gone}'`, 0, "0\n", nil},
	{"tini", `$I -- no-such-program`, 127, "", nil},
	{"tini", `$I -- /no/such/program`, 127, "", nil},
	{"tini", `$I -- ''`, 127, "", nil},
	{"tini", `$I -- $D`, 126, "", nil},
	{"tini", `$I -- $D/plain`, 126, "", nil},
	{"tini", `$I -- $D/plain/x`, 1, "", nil},
	{"tini", `$I -- $D/lost`, 127, "", nil},
	{"tini", `$I -- $D/loop`, 1, "", nil},
	{"tini", `$I -- $D/script x`, 0, "script x\n", nil},
	{"tini", `$I -- $D/empty`, 0, "", nil},
	{"tini", `PATH=$D $I -- script x`, 0, "script x\n", nil},
	{"tini", `$I -- true <&-`, 1, "", &ours{0, "", bug}},

	{"dumb-init", `$I -- sh -c 'exit 3'`, 3, "", nil},
	{"dumb-init", `$I sh -c 'kill -9 $$'`, 137, "", nil},
	{"dumb-init", `$I sh -c 'kill -64 $$'`, 192, "", nil},
	{"dumb-init", `$I ls -d /`, 0, "/\n", nil},
	{"dumb-init", `$I echo -- x`, 0, "-- x\n", nil},
	{"dumb-init", `$I -- echo -- x`, 0, "-- x\n", nil},
	{"dumb-init", `$I -- -- true`, 2, "", nil},
	{"dumb-init", `$I`, 1, "", nil},
	{"dumb-init", `$I --`, 1, "", nil},
	{"dumb-init", `$I -c`, 1, "", nil},
	{"dumb-init", `$I -x true`, 1, "", nil},
	{"dumb-init", `$I --frob true`, 1, "", nil},
	{"dumb-init", `$I -V`, 0, "", nil},
	{"dumb-init", `$I --version true`, 0, "", nil},
	{"dumb-init", `$I --version 2>&1`, 0, "dumb-init v1.2.5…", nil},
	{"dumb-init", `$I --vers 2>&1`, 0, "dumb-init v1.2.5…", nil},
	{"dumb-init", `$I -h`, 0, "", nil},
	{"dumb-init", `$I --help x`, 0, "", nil},
	{"dumb-init", `$I --ver`, 1, "", nil},
	{"dumb-init", `$I -c echo x`, 0, "x\n", nil},
	{"dumb-init", `$I --single-child echo x`, 0, "x\n", nil},
	{"dumb-init", `$I --single echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -v echo x`, 0, "x\n", nil},
	{"dumb-init", `$I --verb echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -vc echo x`, 0, "x\n", nil},
	{"dumb-init", `DUMB_INIT_DEBUG=1 DUMB_INIT_SETSID=0 $I sh -c 'echo $DUMB_INIT_DEBUG $DUMB_INIT_SETSID'`, 0, "1 0\n", nil},
	{"dumb-init", `$I -r 15:3 echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -r15:3 echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -cr15:3 echo x`, 0, "x\n", nil},
	{"dumb-init", `$I --rewrite 15:3 echo x`, 0, "x\n", nil},
	{"dumb-init", `$I --rewrite=15:3 echo x`, 0, "x\n", nil},
	{"dumb-init", `$I --rew 15:3 echo x`, 0, "x\n", nil},
	{"dumb-init", `$I --rew=15:3 -- echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -r ' 15:3' echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -r '15: 3' echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -r +15:3 echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -r 015:03 echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -r 15:3xyz echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -r 15:3:4 echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -r 17:10 -r 9:10 -r 19:10 -r 27:10 echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -r 15:9 -r 1:0 -r 1:31 echo x`, 0, "x\n", nil},
	{"dumb-init", `$I -r TERM:SIGQUIT echo x`, 1, "", &ours{0, "x\n", superset}},
	{"dumb-init", `$I -r '' echo x`, 1, "", nil},
	{"dumb-init", `$I -r herp echo x`, 1, "", nil},
	{"dumb-init", `$I -r 15 echo x`, 1, "", nil},
	{"dumb-init", `$I -r 15: echo x`, 1, "", nil},
	{"dumb-init", `$I -r :15 echo x`, 1, "", nil},
	{"dumb-init", `$I -r 15::12 echo x`, 1, "", nil},
	{"dumb-init", `$I -r 15:derp echo x`, 1, "", nil},
	{"dumb-init", `$I -r derp:15 echo x`, 1, "", nil},
	{"dumb-init", `$I -r 15:-1 echo x`, 1, "", nil},
	{"dumb-init", `$I -r 0:15 echo x`, 1, "", nil},
	{"dumb-init", `$I -r 1:32 echo x`, 1, "", nil},
	{"dumb-init", `$I -r 32:1 echo x`, 1, "", nil},
	{"dumb-init", `$I -r '15 :3' echo x`, 1, "", nil},
	{"dumb-init", `$I -r 0x1:3 echo x`, 1, "", nil},
	{"dumb-init", `$I -r 15:3 -r 15 echo x`, 1, "", nil},
	{"dumb-init", `$I -r`, 1, "", nil},
	{"dumb-init", `$I --rewrite`, 1, "", nil},
	{"dumb-init", `$I -- no-such-program`, 2, "", nil},
	{"dumb-init", `$I ''`, 2, "", nil},
	{"dumb-init", `$I $D`, 2, "", nil},
	{"dumb-init", `$I $D/plain`, 2, "", nil},
	{"dumb-init", `$I $D/plain/x`, 2, "", nil},
	{"dumb-init", `$I $D/lost`, 2, "", nil},
	{"dumb-init", `$I $D/script x`, 0, "script x\n", nil},
	{"dumb-init", `$I $D/empty`, 0, "", nil},
	{"dumb-init", `$I echo x <&-`, 0, "x\n", nil},

	{"catatonit", `$I -- sh -c 'exit 3'`, 3, "", nil},
	{"catatonit", `$I -- sh -c 'kill -9 $$'`, 137, "", nil},
	{"catatonit", `$I -- sh -c 'kill -64 $$'`, 192, "", nil},
	{"catatonit", `$I echo x`, 0, "x\n", nil},
	{"catatonit", `$I -g -- echo x`, 0, "x\n", nil},
	{"catatonit", `$I -- echo -- x`, 0, "-- x\n", nil},
	{"catatonit", `$I echo -- x`, 0, "x\n", &ours{0, "-- x\n", permutes}},
	{"catatonit", `$I ls -d /`, 1, "", &ours{0, "/\n", permutes}},
	{"catatonit", `$I echo -g`, 0, "\n", &ours{0, "-g\n", permutes}},
	{"catatonit", `$I -- -- true`, 1, "", nil},
	{"catatonit", `$I`, 1, "", nil},
	{"catatonit", `$I --`, 1, "", nil},
	{"catatonit", `$I -g`, 1, "", nil},
	{"catatonit", `$I -x true`, 1, "", nil},
	{"catatonit", `$I --frob true`, 1, "", nil},
	{"catatonit", `$I -V`, 0, "tini version …", nil},
	{"catatonit", `$I --version`, 0, "tini version …", nil},
	{"catatonit", `$I --vers`, 0, "tini version …", nil},
	{"catatonit", `$I -gV`, 0, "tini version …", nil},
	{"catatonit", `$I -V true`, 0, "tini version …", nil},
	{"catatonit", `$I -h`, 0, "", nil},
	{"catatonit", `$I --help`, 1, "", &ours{0, "", superset}},
	{"catatonit", `$I -L`, 0, "…", nil},
	{"catatonit", `CATATONIT_DEBUG= $I sh -- -c 'echo "${CATATONIT_DEBUG-gone}"'`, 0, "\n", &ours{2, "", permutes}},
	{"catatonit", `CATATONIT_DEBUG= $I -- sh -c 'echo "${CATATONIT_DEBUG-gone}"'`, 0, "\n", nil},
	{"catatonit", `CATATONIT_LOG= $I echo x`, 1, "", nil},
	{"catatonit", `CATATONIT_LOG=x $I echo x`, 1, "", nil},
	{"catatonit", `CATATONIT_LOG=x $I -V`, 1, "", &ours{0, "tini version …", "it starts nothing"}},
	{"catatonit", `$I -- no-such-program`, 1, "", nil},
	{"catatonit", `$I ''`, 1, "", nil},
	{"catatonit", `$I $D`, 1, "", nil},
	{"catatonit", `$I $D/plain`, 1, "", nil},
	{"catatonit", `$I $D/plain/x`, 1, "", nil},
	{"catatonit", `$I $D/lost`, 1, "", nil},
	{"catatonit", `$I $D/script x`, 0, "script x\n", nil},
	{"catatonit", `$I $D/empty`, 0, "", nil},
	{"catatonit", `$I echo x <&-`, 0, "x\n", nil},
}

// TestDropinShapes: the same call, the same exit code and standard output.
func TestDropinShapes(t *testing.T) {
	dir := oddPrograms(t)
	for _, name := range []string{"tini", "dumb-init", "catatonit"} {
		eachInit(t, name, func(t *testing.T, init string) {
			for _, s := range shapes {
				if s.init != name {
					continue
				}
				if s.ours != nil && isOurs(init) {
					s.code, s.out = s.ours.code, s.ours.out
				}
				code, out := callShape(t, s.call, init, dir)
				begins, open := strings.CutSuffix(s.out, "…")
				if code != s.code || out != s.out && !(open && out != "" && strings.HasPrefix(out, begins)) {
					t.Errorf("%s: left with %d and %q; want %d and %q", s.call, code, out, s.code, s.out)
				}
			}
		})
	}
}

// callShape runs a call in a session of its own, without a terminal.
func callShape(t *testing.T, call, init, dir string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", call)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "I=" + init, "D=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	text, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", call, err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// oddPrograms is a folder of programs that not every init runs.
func oddPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"script": "echo script $1\n", "empty": "", "lost": "#!/no/interpreter\n", "plain": ""} {
		mode := os.FileMode(0o755)
		if name == "plain" {
			mode = 0o644
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDropinTalk: what makes an init talkative, on whichever stream.
func TestDropinTalk(t *testing.T) {
	for name, calls := range map[string]map[string]bool{
		"tini": {
			`$I -s true`: false, `$I -s -vv true`: true, `$I -svvv true`: true, `TINI_VERBOSITY=3 $I -s true`: true,
			`TINI_VERBOSITY=0 $I -svvv true`: false, `TINI_VERBOSITY= TINI_SUBREAPER= $I -vvv true`: false,
		},
		"dumb-init": {
			`$I true`: false, `$I -v true`: true, `$I --verbose true`: true, `DUMB_INIT_DEBUG=1 $I true`: true,
			`DUMB_INIT_DEBUG=0 $I true`: false, `DUMB_INIT_DEBUG=yes $I true`: false, `DUMB_INIT_DEBUG= $I true`: false,
		},
		"catatonit": {`$I true`: false, `CATATONIT_DEBUG=1 $I true`: true, `CATATONIT_DEBUG= $I true`: true},
	} {
		eachInit(t, name, func(t *testing.T, init string) {
			for call, talks := range calls {
				if _, out := callShape(t, call+" 2>&1", init, ""); (out != "") != talks {
					t.Errorf("%s: said %q, want something: %v", call, out, talks)
				}
			}
		})
	}
}

// TestDropinVersion: docker info and docker version understand what the init
// says. Their rule: what is before a " - " begins with "tini version ", and
// after it may come "git." and a commit.
func TestDropinVersion(t *testing.T) {
	for _, name := range []string{"tini", "tini-static", "docker-init", "catatonit", "podman-init"} {
		eachInit(t, name, func(t *testing.T, init string) {
			_, out := callShape(t, "$I --version", init, "")
			version, commit, ok := dockerReads(out)
			if !ok || version == "" || strings.ContainsAny(version, " \n") {
				t.Errorf("%q is read as version %q, commit %q, %v", out, version, commit, ok)
			}
		})
	}
	for out, want := range map[string]string{
		"tini version 0.13.0 - git.949e6fa": "0.13.0 949e6fa true", "tini version 0.13.2\n": "0.13.2  true",
		"tini version 0.13.2 - ": "0.13.2  true", " - git.949e6fa": " 949e6fa true", "tini version0.13.2": "  false", "version 0.13.0": "  false", "": "  false",
	} {
		if version, commit, ok := dockerReads(out); fmt.Sprint(version, " ", commit, " ", ok) != want {
			t.Errorf("%q: %q, %q, %v; want %s", out, version, commit, ok, want)
		}
	}
}

func dockerReads(out string) (version, commit string, ok bool) {
	before, after, _ := strings.Cut(strings.TrimSuffix(out, "\n"), " - ")
	if fields := strings.Split(after, "."); len(fields) == 2 && fields[0] == "git" {
		commit = fields[1]
	}
	version, tini := strings.CutPrefix(before, "tini version ")
	if !tini {
		version = ""
	}
	return version, commit, version != "" || commit != ""
}

// TestDropinForwards sends every signal that our command, a Go program, can see
// through every init as PID 1. All that an init passes on lameduck does too; it
// also passes what some of them keep: faults that somebody sent (tini#104) and
// terminal stops (podman#18095).
func TestDropinForwards(t *testing.T) {
	seen := sig.Set(^uint64(0)).Without(sig.SetOf(sig.KILL, sig.STOP, sig.CHLD, 27, 32, 33, 34))
	faults := sig.SetOf(4, 5, 6, 7, 8, 11, 31)
	stops := sig.SetOf(sig.TSTP, sig.TTIN, sig.TTOU)
	for _, c := range []struct {
		name, flag string
		send, kept sig.Set
	}{
		{"tini", "-s", seen, faults | sig.SetOf(sig.TTIN, sig.TTOU)},
		{"dumb-init", "--single-child", seen, 0},
		{"dumb-init", "--", seen.Without(stops), 0}, // see TestDropinStops
		{"catatonit", "--", seen, faults | stops},
	} {
		eachInit(t, c.name, func(t *testing.T, init string) {
			want := c.send
			if !isOurs(init) {
				want = want.Without(c.kept)
			}
			b := bootCatch(t, init, c.flag)
			wanted := 1
			for s := range c.send.All {
				b.signal(s)
				if want.Has(s) {
					wanted++
					b.out.count(t, wanted)
				}
			}
			b.tell("exit 0")
			b.wants(0)
			if got := received(t, b); got != want {
				t.Errorf("lost %v, too many %v", slices.Collect(want.Without(got).All), slices.Collect(got.Without(want).All))
			}
		})
	}
}

// received is what the command has caught.
func received(t *testing.T, b *box) (set sig.Set) {
	t.Helper()
	for _, line := range b.out.all()[1:] {
		set = set.With(mustSignal(t, strings.TrimPrefix(line.text, "got ")))
	}
	return set
}

// TestDropinRewrites: what arrives at dumb-init, and what the command gets for
// it.
func TestDropinRewrites(t *testing.T) {
	for flags, steps := range map[string]string{
		"-r 15:3":               "TERM>QUIT INT>INT",
		"-r 15:2 -r 2:1":        "TERM>INT INT>HUP", // no chaining
		"-r 15:2 -r 2:15":       "TERM>INT INT>TERM",
		"-r 15:1 -r 15:3":       "TERM>QUIT", // the last one wins
		"-r 15:0 -r 15:3":       "TERM>QUIT",
		"-r 15:15":              "TERM>TERM",
		"-r 1:31 -r 31:1":       "HUP>SYS SYS>HUP",
		"-r 15:0":               "TERM> TERM>",
		"-r 17:10":              "CHLD> CHLD>",
		"-r 20:10 -r 21:12":     "TSTP>USR1 TTIN>USR2",
		"-r 22:0":               "TTOU>",
		"-c -r 15:2":            "TERM>INT",
		"-c -r 20:10":           "TSTP>USR1 TTIN>TTIN TTOU>TTOU",
		"--single-child --":     "TERM>TERM TSTP>TSTP",
		"--rewrite=10:12 -r1:2": "USR1>USR2 HUP>INT",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			eachInit(t, "dumb-init", func(t *testing.T, init string) {
				b := bootCatch(t, init, strings.Fields(flags)...)
				want := []string{"ready"}
				for _, step := range strings.Fields(steps) {
					from, to, _ := strings.Cut(step, ">")
					b.signal(mustSignal(t, from))
					if to == "" { // the last of all signals shows that this one is through
						b.signal(sig.RTMax)
						to = sig.RTMax.String()
					}
					want = append(want, "got "+to)
					b.out.count(t, len(want))
				}
				if got := fmt.Sprint(b.out.all()); got != fmt.Sprint(want) {
					t.Errorf("%v, want %v", got, want)
				}
			})
		})
	}
}

// groupScript has two processes that both say when USR1 comes. The first waits
// for the second if it is to.
const groupScript = `trap 'echo first; [ "$0" = wait ] && wait; exit 5' USR1
( trap 'echo second; exit' USR1; echo ready; while :; do sleep 0.01; done ) & wait`

// TestDropinGroup: who gets a signal, the command or its whole group.
func TestDropinGroup(t *testing.T) {
	for call, group := range map[string]bool{
		"tini": false, "tini -g": true, "TINI_KILL_PROCESS_GROUP= tini": true, "TINI_KILL_PROCESS_GROUP=0 tini": true,
		"dumb-init": true, "dumb-init -c": false, "DUMB_INIT_SETSID=0 dumb-init": false, "DUMB_INIT_SETSID=1 dumb-init": true,
		"catatonit": false, "catatonit -g": true,
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			words := strings.Fields(call)
			var env []string
			if strings.Contains(words[0], "=") {
				env, words = words[:1], words[1:]
			}
			eachInit(t, words[0], func(t *testing.T, init string) {
				last, want := "leave", []string{"first", "ready"}
				if group {
					last, want = "wait", []string{"first", "ready", "second"}
				}
				b := bootInit(t, init, env, append(words[1:], "--", "sh", "-c", groupScript, last)...)
				b.out.wait(t, "ready")
				b.signal(sig.USR1)
				b.wants(5)
				var got []string
				for _, line := range b.out.all() {
					got = append(got, line.text)
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			})
		})
	}
}

// TestDropinStops: to dumb-init's group terminal stops go as STOP, since a group
// without a parent in its session would not obey them. As PID 1 it runs on.
func TestDropinStops(t *testing.T) {
	eachInit(t, "dumb-init", func(t *testing.T, init string) {
		b := bootCatch(t, init)
		command := onlyChild(t, b.cmd.Process.Pid)
		for i, s := range []sig.Signal{sig.TSTP, sig.TTIN, sig.TTOU} {
			b.signal(s)
			awaitState(t, command, "T")
			awaitState(t, b.cmd.Process.Pid, "S") // dumb-init's STOP to itself would take back a CONT
			b.signal(sig.CONT)
			b.out.count(t, 2+i)
			awaitState(t, command, "S")
		}
		b.tell("exit 6")
		b.wants(6)
		if got := received(t, b); got != sig.SetOf(sig.CONT) || len(b.out.all()) != 4 {
			t.Errorf("the command got %v", b.out.all())
		}
	})
}

// TestDropinStopsItself: where dumb-init is not PID 1 it stops with its command,
// whatever becomes of the signal, and CONT wakes both.
func TestDropinStopsItself(t *testing.T) {
	for flags, says := range map[string]string{"--": "", "-c": "got TSTP", "-r 20:10": "got USR1", "-r 20:0": ""} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			eachInit(t, "dumb-init", func(t *testing.T, init string) {
				words := slices.Concat([]string{init}, strings.Fields(flags), self("catch"))
				b := launch(t, nil, syscall.SysProcAttr{Setsid: true}, words...)
				b.out.wait(t, "ready")
				command := onlyChild(t, b.cmd.Process.Pid)
				b.signal(sig.TSTP)
				awaitState(t, b.cmd.Process.Pid, "T")
				if says != "" {
					b.out.wait(t, says)
				}
				if flags == "--" {
					awaitState(t, command, "T")
				}
				b.signal(sig.CONT)
				b.out.wait(t, "got CONT")
				awaitState(t, b.cmd.Process.Pid, "S")
				b.tell("exit 6")
				b.wants(6)
			})
		})
	}
}

// onlyChild is the pid of a process's child.
func onlyChild(t *testing.T, parent int) int {
	t.Helper()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		if fields := stat(pid); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			return pid
		}
	}
	t.Fatalf("%d has no child", parent)
	return 0
}

// stat are the fields of proc_pid_stat(5) from the third, the state.
func stat(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// awaitState waits until a process is in a state: S waits, T is stopped.
func awaitState(t *testing.T, pid int, state string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if fields := stat(pid); len(fields) > 0 && fields[0] == state {
			return
		}
	}
	t.Fatalf("process %d: %v; want state %s", pid, stat(pid), state)
}

// farewellScript leaves a process behind that says when it is told to end. (WINCH
// comes after all others that a shell has pending.)
const farewellScript = `( trap 'echo told TERM; exit' TERM; trap 'echo told USR1; exit' USR1; trap 'echo asked; exit' WINCH
echo ready; while :; do sleep 0.01; done ) & echo left $!; read x; exit 4`

// TestDropinFarewell: when dumb-init's command has exited, what is left of its
// group is sent TERM, which is rewritten like any other.
func TestDropinFarewell(t *testing.T) {
	for flags, told := range map[string]string{
		"--": "told TERM", "-r 15:10": "told USR1", "-r 15:0": "asked", "-c": "asked", "-c -r 15:10": "asked",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			eachInit(t, "dumb-init", func(t *testing.T, init string) {
				words := slices.Concat([]string{init}, strings.Fields(flags), []string{"sh", "-c", farewellScript})
				b := launch(t, nil, syscall.SysProcAttr{Setsid: true}, words...)
				b.out.wait(t, "ready")
				left, err := strconv.Atoi(strings.TrimPrefix(b.out.wait(t, "left ").text, "left "))
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Kill(left, unix.SIGKILL)
				b.tell("leave")
				if state, err := b.cmd.Process.Wait(); err != nil || state.ExitCode() != 4 {
					t.Errorf("%v, %v; want 4", state, err)
				}
				unix.Kill(left, unix.SIGWINCH)
				<-b.out.ended
				if got := b.out.all(); len(got) < 3 || got[2].text != told {
					t.Errorf("%v, want %s", got, told)
				}
			})
		})
	}
}

// TestDropinTerminal: dumb-init gives up the terminal to its command's session.
// The HUP and CONT that the kernel sends for it are nobody's; later ones pass.
func TestDropinTerminal(t *testing.T) {
	eachInit(t, "dumb-init", func(t *testing.T, init string) {
		s := onScreen(t, true, append([]string{init}, self("catch")...)...)
		s.shows("ready")
		for _, name := range []string{"HUP", "CONT", "HUP", "CONT"} {
			unix.Kill(s.cmd.Process.Pid, unix.Signal(mustSignal(t, name)))
			s.shows("got " + name)
		}
		s.types(ctrlC)
		s.shows("got INT")
		s.types("exit 7\n")
		s.leaves(7)
		for name, n := range map[string]int{"got HUP": 2, "got CONT": 2, "got INT": 1} {
			if got := s.count(name); got != n {
				t.Errorf("%q %d times, want %d", name, got, n)
			}
		}
	})
	eachInit(t, "tini", func(t *testing.T, init string) {
		s := onScreen(t, true, append([]string{init, "--"}, self("catch")...)...)
		s.shows("ready")
		unix.Kill(s.cmd.Process.Pid, unix.SIGHUP)
		s.shows("got HUP")
		s.types(ctrlC)
		s.shows("got INT")
		s.types("exit 7\n")
		s.leaves(7)
	})
}

// TestDropinWarnReaped: tini says of every orphan that it reaped it, if asked to.
func TestDropinWarnReaped(t *testing.T) {
	for call, says := range map[string]bool{"tini -w": true, "tini": false, "TINI_VERBOSITY=0 tini -w": false} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			eachInit(t, "tini", func(t *testing.T, init string) {
				var env, flags []string
				for _, word := range strings.Fields(call) {
					if strings.Contains(word, "=") {
						env = append(env, word)
					} else if word != "tini" {
						flags = append(flags, word)
					}
				}
				script := []string{"--", "sh", "-c", `( : & ); exec "$@"`, "sh"}
				b := bootInit(t, init, env, slices.Concat(flags, script, self("zombies"))...)
				b.wants(0)
				said := fmt.Sprint(b.err.all())
				if strings.Contains(strings.ToLower(said), "reaped") != says {
					t.Errorf("said %s", said)
				}
			})
		})
	}
}

// TestDropinParentDeath: tini -p SIG sends itself SIG when its parent ends, and
// passes it on like any other.
func TestDropinParentDeath(t *testing.T) {
	eachInit(t, "tini", func(t *testing.T, init string) {
		script := []string{"sh", "-c", `exec 3<&0; "$@" <&3 & wait`, "sh", init, "-s", "-p", "SIGUSR1", "--"}
		b := launch(t, nil, syscall.SysProcAttr{Setsid: true}, append(script, self("catch")...)...)
		b.out.wait(t, "ready")
		b.cmd.Process.Kill()
		b.out.wait(t, "got USR1")
		b.tell("exit 0")
		<-b.out.ended
	})
}

// TestDropinSubreaper: orphans come to an init that is not PID 1. (tini has to be
// told, and lameduck under its name does so by itself.)
func TestDropinSubreaper(t *testing.T) {
	for _, call := range []string{"tini -s", "TINI_SUBREAPER= tini", "TINI_SUBREAPER=0 tini", "catatonit"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			words := strings.Fields(call)
			var env []string
			if strings.Contains(words[0], "=") {
				env, words = words[:1], words[1:]
			}
			eachInit(t, words[0], func(t *testing.T, init string) {
				family := `echo "init $PPID"; ( "$@" & ); read end`
				inner := slices.Concat([]string{init}, words[1:], []string{"--", "sh", "-c", family, "sh"}, self("orphan"))
				b := boot(t, env, inner...)
				parent := strings.TrimPrefix(b.out.wait(t, "init ").text, "init ")
				if orphan := b.out.wait(t, "orphan ").text; orphan != "orphan "+parent {
					t.Errorf("the init is %s, but %s", parent, orphan)
				}
				b.tell("end")
				b.wants(0)
			})
		})
	}
}

// TestDropinPause: the process that only keeps a pod's namespaces reaps what
// others leave there, and ends with 0 on TERM or INT and nothing else.
func TestDropinPause(t *testing.T) {
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("nsenter is not installed")
	}
	for call, inits := range map[string][]string{"-P": {"catatonit"}, "-P no-such-program": {"catatonit"}, "": {"pause"}} {
		for _, end := range []sig.Signal{sig.TERM, sig.INT} {
			t.Run(call+" "+end.String(), func(t *testing.T) {
				t.Parallel()
				eachInit(t, inits[0], func(t *testing.T, init string) { pauseUntil(t, end, init, strings.Fields(call)) })
			})
		}
	}
}

func pauseUntil(t *testing.T, end sig.Signal, init string, flags []string) {
	b := bootInit(t, init, nil, flags...)
	awaitExec(t, b.cmd.Process.Pid, init)
	for _, s := range []sig.Signal{sig.HUP, sig.QUIT, sig.USR1, sig.USR2, sig.PIPE, sig.CONT, sig.WINCH, sig.CHLD, sig.RTMax} {
		b.signal(s)
	}
	words := append([]string{"-t", strconv.Itoa(b.cmd.Process.Pid), "-p", "-m", "sh", "-c", `( : & ); exec "$@"`, "sh"}, self("zombies")...)
	if out, err := exec.Command("nsenter", words...).CombinedOutput(); err != nil {
		t.Errorf("an orphan is not reaped: %v\n%s", err, out)
	}
	b.signal(end)
	b.wants(0)
	if len(b.out.all())+len(b.err.all()) > 0 {
		t.Errorf("said %v %v", b.out.all(), b.err.all())
	}
}

// awaitExec waits until a process has become an init, and sees to signals: others
// block TERM to wait for it, and ours catches RTMIN, which Go's runtime does not.
func awaitExec(t *testing.T, pid int, init string) {
	t.Helper()
	want := must(filepath.EvalSymlinks(init))
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		ready := blocks(pid).Has(sig.TERM)
		if isOurs(init) {
			caught, _ := proc.Caught(pid)
			ready = caught.Has(sig.RTMin)
		}
		if exe == want && ready {
			return
		}
	}
	t.Fatalf("%d is not yet %s", pid, init)
}

// TestDropinHold: a drop-in holds where LAMEDUCK_* says so, which an init that a
// runtime injects is told in no other way. The command gets those variables no
// more, and all others as they are.
func TestDropinHold(t *testing.T) {
	env := []string{"LAMEDUCK_DELAY=15", "LAMEDUCK_GRACE_PERIOD=60", "LAMEDUCK_REWRITE=TERM:USR2", "TINI_SUBREAPER=", "DUMB_INIT_DEBUG=0", "APP=1"}
	script := append([]string{"--", "sh", "-c", `env; exec "$@"`, "sh"}, self("catch")...)
	for name, flags := range map[string][]string{
		"docker-init": nil, "tini": {"-s"}, "tini-static": nil, "podman-init": nil, "catatonit": {"-g"}, "dumb-init": {"-c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bootAs(t, name, env, append(flags, script...)...)
			b.out.wait(t, "ready")
			for _, line := range b.out.all() {
				if strings.HasPrefix(line.text, "LAMEDUCK_") {
					t.Errorf("the command gets %s", line)
				}
			}
			for _, entry := range env[3:] {
				b.out.wait(t, entry)
			}
			b.signal(sig.TERM)
			b.err.wait(t, "TERM: holding 15 s, then USR2")
			b.signal(sig.HUP) // others pass
			b.out.wait(t, "got HUP")
			b.signal(sig.INT) // ends the hold
			b.out.wait(t, "got USR2")
			b.tell("exit 5")
			b.wants(5)
			b.reports(sig.TERM, "interrupt", 0, sig.USR2, 5)
			for _, line := range b.out.all() {
				if line.text == "got TERM" || line.text == "got INT" {
					t.Error(line)
				}
			}
		})
	}
	t.Run("dumb-init session", func(t *testing.T) { // its rewrite wins, and all of the group gets it
		t.Parallel()
		env := append([]string{"LAMEDUCK_DELAY=0.3"}, env[1:]...)
		b := bootAs(t, "dumb-init", env, "-r", "15:10", "sh", "-c", groupScript, "wait")
		b.out.wait(t, "ready")
		b.signal(sig.TERM)
		b.err.wait(t, "TERM: holding 0.3 s, then USR1")
		b.wants(5)
		b.out.wait(t, "second")
		b.reports(sig.TERM, "elapsed", 300*time.Millisecond, sig.USR1, 5)
	})
}

// holdReport is a report: what began the stop, how long the hold was and why it
// ended, what was sent, and the command's exit code.
var holdReport = regexp.MustCompile(`^lameduck: (\S+): held (\S+) s \((\w+)\); sent (\S+) at \+\S+ s; the command exited (\d+) `)

// reports wants the report of a hold that was this long at least.
func (b *box) reports(trigger sig.Signal, why string, length time.Duration, sent sig.Signal, code int) {
	b.t.Helper()
	line := b.err.wait(b.t, ": held ").text
	found := holdReport.FindStringSubmatch(line)
	want := []string{trigger.String(), why, sent.String(), strconv.Itoa(code)}
	if found == nil || !slices.Equal([]string{found[1], found[3], found[4], found[5]}, want) {
		b.t.Errorf("reported %q, want %v", line, want)
		return
	}
	if seconds, _ := strconv.ParseFloat(found[2], 64); seconds < length.Seconds() {
		b.t.Errorf("held %v s, want %v", seconds, length)
	}
}
