package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of the command lines of the inits: exit codes and output.

// initCall is a call of an init, and its result.
type initCall struct {
	init, call string // call is a shell's command line; $I is the init, $D the folder of writeOddPrograms
	code       int
	out        string // standard output; "tini…" stands for any output that begins with tini
	differs    *difference
}

// difference is the result of lameduck where lameduck differs from the init on purpose.
type difference struct {
	code int
	out  string
	why  string
}

const (
	superset = "the init refuses the call, which lameduck can obey"
	permutes = "the init reads the flags of its command as its own"
	onStderr = "standard output is the command's"
	bug      = "a bug of the init"
)

var initCalls = []initCall{
	{"tini", `$I -- sh -c 'exit 3'`, 3, "", nil},
	{"tini", `$I -- sh -c 'kill -9 $$'`, 137, "", nil},
	{"tini", `$I -- sh -c 'kill -64 $$'`, 192, "", nil},
	{"tini", `echo 'exit 7' | $I sh`, 7, "", nil},
	{"tini", `$I false`, 1, "", nil},
	{"tini", `$I echo x`, 0, "x\n", nil},
	{"tini", `$I -- echo -- x`, 0, "-- x\n", nil},
	{"tini", `$I echo -- x`, 0, "x\n", nil},
	{"tini", `$I echo a -- x`, 0, "a x\n", &difference{0, "a -- x\n", permutes}},
	{"tini", `$I -- echo a -- x`, 0, "a -- x\n", nil},
	{"tini", `$I sh -- -c 'exit 3'`, 3, "", nil},
	{"tini", `$I -s -g -w echo -- -n x`, 0, "x", nil},
	{"tini", `$I -sgw -- echo x`, 0, "x\n", nil},
	{"tini", `$I ls -d /`, 1, "", &difference{0, "/\n", permutes}},
	{"tini", `$I env -h`, 0, "tini…", &difference{125, "", permutes}},
	{"tini", `$I echo x -s`, 0, "x\n", &difference{0, "x -s\n", permutes}},
	{"tini", `$I -- -- true`, 127, "", nil},
	{"tini", `$I -- --version`, 127, "", nil},
	{"tini", `$I - true`, 127, "", nil},
	{"tini", `$I`, 1, "", nil},
	{"tini", `$I --`, 1, "", nil},
	{"tini", `$I -s`, 1, "", nil},
	{"tini", `$I -x true`, 1, "", nil},
	{"tini", `$I --frob true`, 1, "", nil},
	{"tini", `$I --version`, 0, "tini version 0.19.0…", nil},
	{"tini", `$I --version true`, 1, "", &difference{0, "tini version 0.19.0…", superset}},
	{"tini", `$I -h`, 0, "…", nil},
	{"tini", `$I -h true`, 0, "…", nil},
	{"tini", `$I -l`, 0, "…", nil},
	{"tini", `$I --help`, 1, "", &difference{0, "usage…", superset}},
	{"tini", `$I -e 7 -- sh -c 'exit 7'`, 0, "", nil},
	{"tini", `$I -e7 -- sh -c 'exit 7'`, 0, "", nil},
	{"tini", `$I -e ' 7' -- sh -c 'exit 7'`, 0, "", nil},
	{"tini", `$I -e +7 -- sh -c 'exit 7'`, 0, "", nil},
	{"tini", `$I -e 007 -- sh -c 'exit 7'`, 0, "", nil},
	{"tini", `$I -e '' -- sh -c 'exit 7'`, 7, "", nil},
	{"tini", `$I -e 7 -e 8 -e 8 -- sh -c 'exit 8'`, 0, "", nil},
	{"tini", `$I -e 7 -- sh -c 'exit 8'`, 8, "", nil},
	{"tini", `$I -e 143 -- sh -c 'kill $$'`, 0, "", nil},
	{"tini", `$I -e 127 -- no-such-program`, 0, "", &difference{127, "", "a command that never ran has no exit code"}},
	{"tini", `$I -e 256 true`, 1, "", nil},
	{"tini", `$I -e -1 true`, 1, "", nil},
	{"tini", `$I -e abc true`, 1, "", nil},
	{"tini", `$I -e 7abc true`, 1, "", nil},
	{"tini", `$I -e 0x7 true`, 1, "", nil},
	{"tini", `$I -e '7 ' true`, 1, "", &difference{0, "", superset}},
	{"tini", `$I -e`, 1, "", nil},
	{"tini", `$I -p SIGTERM true`, 0, "", nil},
	{"tini", `$I -p SIGKILL true`, 0, "", nil},
	{"tini", `$I -p TERM true`, 1, "", &difference{0, "", superset}},
	{"tini", `$I -p sigterm true`, 1, "", &difference{0, "", superset}},
	{"tini", `$I -p SIGRTMIN true`, 1, "", &difference{0, "", superset}},
	{"tini", `$I -p NOSUCH true`, 1, "", nil},
	{"tini", `$I -p '' true`, 1, "", nil},
	{"tini", `$I -p`, 1, "", nil},
	{"tini", `$I -vvv true`, 0, "[INFO …", &difference{0, "", onStderr}},
	{"tini", `TINI_VERBOSITY=3 $I true`, 0, "[INFO …", &difference{0, "", onStderr}},
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
	{"tini", `$I -- true <&-`, 1, "", &difference{0, "", bug}},

	{"dumb-init", `$I -- sh -c 'exit 3'`, 3, "", nil},
	{"dumb-init", `$I sh -c 'kill -9 $$'`, 137, "", nil},
	{"dumb-init", `$I sh -c 'kill -64 $$'`, 192, "", nil},
	{"dumb-init", `echo 'exit 7' | $I sh`, 7, "", nil},
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
	{"dumb-init", `$I -r TERM:SIGQUIT echo x`, 1, "", &difference{0, "x\n", superset}},
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
	{"catatonit", `echo 'exit 7' | $I sh`, 7, "", nil},
	{"catatonit", `$I echo x`, 0, "x\n", nil},
	{"catatonit", `$I -g -- echo x`, 0, "x\n", nil},
	{"catatonit", `$I -- echo -- x`, 0, "-- x\n", nil},
	{"catatonit", `$I echo -- x`, 0, "x\n", &difference{0, "-- x\n", permutes}},
	{"catatonit", `$I ls -d /`, 1, "", &difference{0, "/\n", permutes}},
	{"catatonit", `$I echo -g`, 0, "\n", &difference{0, "-g\n", permutes}},
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
	{"catatonit", `$I --help`, 1, "", &difference{0, "", superset}},
	{"catatonit", `$I -L`, 0, "…", nil},
	{"catatonit", `CATATONIT_DEBUG= $I sh -- -c 'echo "${CATATONIT_DEBUG-gone}"'`, 0, "\n", &difference{2, "", permutes}},
	{"catatonit", `CATATONIT_DEBUG= $I -- sh -c 'echo "${CATATONIT_DEBUG-gone}"'`, 0, "\n", nil},
	{"catatonit", `CATATONIT_LOG= $I echo x`, 1, "", nil},
	{"catatonit", `CATATONIT_LOG=x $I echo x`, 1, "", nil},
	{"catatonit", `CATATONIT_LOG=x $I -V`, 1, "", &difference{0, "tini version …", "it starts nothing"}},
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

// TestDropinShapes: the same call gives the same exit code and standard output.
func TestDropinShapes(t *testing.T) {
	dir := writeOddPrograms(t)
	for _, name := range []string{"tini", "dumb-init", "catatonit"} {
		onEachInit(t, name, func(t *testing.T, init string) {
			for _, s := range initCalls {
				if s.init != name {
					continue
				}
				if s.differs != nil && isLameduck(init) {
					s.code, s.out = s.differs.code, s.differs.out
				}
				code, out := runCall(t, s.call, init, dir)
				begins, open := strings.CutSuffix(s.out, "…")
				if code != s.code || out != s.out && !(open && out != "" && strings.HasPrefix(out, begins)) {
					t.Errorf("%s: exit code %d and output %q; want %d and %q", s.call, code, out, s.code, s.out)
				}
			}
		})
	}
}

// runCall runs a call in a new session, without a terminal, and returns the exit code and
// standard output.
func runCall(t *testing.T, call, init, dir string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testutil.Patience)
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

// writeOddPrograms returns a folder of programs that some inits cannot run.
func writeOddPrograms(t *testing.T) string {
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

// TestDropinTalk: which flags and variables make an init print messages of its own, on
// either stream.
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
		onEachInit(t, name, func(t *testing.T, init string) {
			for call, verbose := range calls {
				_, out := runCall(t, call+" 2>&1", init, "")
				if (out != "") != verbose {
					t.Errorf("%s: output %q, want some: %v", call, out, verbose)
				}
			}
		})
	}
}

// TestDropinVersion: docker info and docker version can parse the init's version line:
// "tini version " and a version, then optionally " - git." and a commit.
func TestDropinVersion(t *testing.T) {
	for _, name := range []string{"tini", "tini-static", "docker-init", "catatonit", "podman-init"} {
		onEachInit(t, name, func(t *testing.T, init string) {
			_, out := runCall(t, "$I --version", init, "")
			version, commit, ok := parseDockerVersion(out)
			if !ok || version == "" || strings.ContainsAny(version, " \n") {
				t.Errorf("%q parses as version %q, commit %q, %v", out, version, commit, ok)
			}
		})
	}
	for out, want := range map[string]string{
		"tini version 0.13.0 - git.949e6fa": "0.13.0 949e6fa true", "tini version 0.13.2\n": "0.13.2  true",
		"tini version 0.13.2 - ": "0.13.2  true", " - git.949e6fa": " 949e6fa true", "tini version0.13.2": "  false", "version 0.13.0": "  false", "": "  false",
	} {
		if version, commit, ok := parseDockerVersion(out); fmt.Sprint(version, " ", commit, " ", ok) != want {
			t.Errorf("%q: %q, %q, %v; want %s", out, version, commit, ok, want)
		}
	}
}

// parseDockerVersion parses a version line by the rules of dockerd (parseInitVersion).
func parseDockerVersion(out string) (version, commit string, ok bool) {
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

// TestDropinMayNotSignal: without CAP_KILL an init cannot signal a command that runs as
// another user. tini exits then, and its container ends; the other inits go on.
func TestDropinMayNotSignal(t *testing.T) {
	needs(t, "setpriv")
	if !isRoot() {
		t.Skip("needs another user")
	}
	for _, name := range []string{"tini", "dumb-init", "catatonit"} {
		onEachInit(t, name, func(t *testing.T, init string) {
			words := []string{"setpriv", "--bounding-set", "-kill", init, "--", "setpriv", "--reuid", "65534", "--clear-groups",
				"sh", "-c", "echo ready; read x; exit 5"}
			b := startProgram(t, nil, syscall.SysProcAttr{Setsid: true}, words...)
			b.out.wait(t, "ready")
			b.signal(sig.USR1)
			code := 5
			switch {
			case isLameduck(init):
				b.err.wait(t, "lameduck: warning: cannot send USR1 to the command: operation not permitted")
			case name == "tini":
				b.err.wait(t, "Operation not permitted")
				code = 1
			}
			b.sendLine("end") // under tini the command outlives its init, and keeps the pipes open
			b.wantExit(code)
		})
	}
}
