package e2e

import (
	"archive/tar"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

var containers = flag.Bool("containers", false, "run lameduck in real containers, with podman and runc")

// TestContainer: lameduck as the init of real containers, which podman and runc
// run. They need no network and no image from elsewhere: there is lameduck in
// them, and the test binary.
func TestContainer(t *testing.T) {
	if !*containers {
		t.Skip("only with -containers: .ci/run containers")
	}
	y := newYard(t)
	for name, test := range map[string]func(*testing.T, *yard){
		"signals": containerSignals, "killed": containerKilled, "terminal": containerTerminal,
		"stop": containerStop, "stopsignal": containerStopSignal, "interrupt": containerInterrupt,
		"init": containerInit, "docker-init": containerDockerInit, "pod": containerPod,
		"hardened": containerHardened, "until": containerUntil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, y)
		})
	}
}

// yard is podman with a store and settings of its own, and four images: one whose
// entrypoint is lameduck, two where that is called docker-init and pause, and a
// bare one.
type yard struct {
	dir string
	n   atomic.Int32 // containers so far
}

// catchCommand is the command in the containers.
var catchCommand = []string{"/helper", "helper", "catch"}

// settings make podman need little of the machine, and leave alone the podman that
// may run there. (Limits above our own cannot be
// given to a container.)
const settings = `
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
[containers]
netns = "none"
log_driver = "none"
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
`

// images begins the images' names; such ones are never looked for elsewhere.
const images = "localhost/"

func newYard(t *testing.T) *yard {
	t.Helper()
	for _, program := range []string{"podman", "runc", "conmon", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program, " is not installed")
		}
	}
	dir, err := os.MkdirTemp("", "yard") // t.TempDir's is too long for podman's sockets
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{dir: dir}
	if err := os.WriteFile(y.dir+"/containers.conf", []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Unmount(y.dir+"/root/overlay", unix.MNT_DETACH)
		if err := os.RemoveAll(y.dir); err != nil {
			t.Error(err)
		}
	})
	if out, err := y.podman(t, "ps", "-a"); err != nil {
		t.Skipf("podman does not work: %v\n%s", err, out)
	}
	t.Cleanup(func() { y.clear(t) })
	image := y.image(t)
	for name, entrypoint := range map[string]string{"bare": `[]`, "lameduck": `["/lameduck"]`, "docker": `["/sbin/docker-init", "--"]`, "pause": `["/pause"]`} {
		if out, err := y.podman(t, "import", "-q", "--change", "ENTRYPOINT "+entrypoint, image, images+name); err != nil {
			t.Skipf("podman cannot import an image: %v\n%s", err, out)
		}
	}
	if out, err := y.podman(t, "run", images+"bare", "/helper", "helper", "zombies"); err != nil {
		t.Skipf("podman and runc cannot run a container: %v\n%s", err, out)
	}
	return y
}

// image is a file system: lameduck under its names, and the test binary without
// a C library.
func (y *yard) image(t *testing.T) (path string) {
	t.Helper()
	helper := filepath.Join(y.dir, "helper")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-s -w", "-o", helper, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("the test binary cannot be built again: %v\n%s", err, out)
	}
	path = filepath.Join(y.dir, "image.tar")
	file := testutil.Must(os.Create(path))
	defer file.Close()
	archive := tar.NewWriter(file)
	for name, source := range map[string]string{"lameduck": binary, "helper": helper} {
		content := testutil.Must(os.ReadFile(source))
		archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))})
		archive.Write(content)
	}
	archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "sbin/docker-init", Linkname: "/lameduck"})
	archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "pause", Linkname: "lameduck"})
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// clear ends and removes all there is.
func (y *yard) clear(t *testing.T) {
	for _, words := range [][]string{{"pod", "rm", "-a", "-f", "-t", "0"}, {"rm", "-a", "-f", "-t", "0"}, {"rmi", "-a", "-f"}} {
		if out, err := y.podman(t, words...); err != nil {
			t.Errorf("podman %v: %v\n%s", words, err, out)
		}
	}
}

// words is a call of podman.
func (y *yard) words(args ...string) []string {
	return append([]string{"env", "HOME=" + y.dir, "CONTAINERS_CONF=" + y.dir + "/containers.conf",
		"podman", "--root", y.dir + "/root", "--runroot", y.dir + "/run", "--tmpdir", y.dir + "/tmp"}, args...)
}

// podman calls it and waits.
func (y *yard) podman(t *testing.T, args ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testutil.Patience)
	defer cancel()
	words := y.words(args...)
	text, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	return strings.TrimSpace(string(text)), err
}

// container is one whose streams are ours.
type container struct {
	*box
	y    *yard
	name string
}

// run starts a container; words are flags of podman run, the image, and the
// command.
func (y *yard) run(t *testing.T, words ...string) *container {
	t.Helper()
	name, words := y.runWords(words)
	return &container{startProgram(t, nil, syscall.SysProcAttr{}, words...), y, name}
}

// runWords is the call for a container, which ends after a minute at the latest.
func (y *yard) runWords(words []string) (name string, call []string) {
	name = fmt.Sprintf("c%d", y.n.Add(1))
	return name, y.words(append([]string{"run", "-i", "--timeout", "60", "--name", name}, words...)...)
}

// catch starts a container with the command that catches signals.
func (y *yard) catch(t *testing.T, words ...string) *container {
	t.Helper()
	c := y.run(t, append(words, catchCommand...)...)
	c.out.wait(t, "ready")
	return c
}

// kill has podman send a signal.
func (c *container) kill(s sig.Signal) {
	c.t.Helper()
	c.y.kill(c.t, c.name, s)
}

func (y *yard) kill(t *testing.T, name string, s sig.Signal) {
	t.Helper()
	if out, err := y.podman(t, "kill", "-s", "SIG"+s.String(), name); err != nil {
		t.Errorf("podman kill: %v\n%s", err, out)
	}
}

// stop has podman stop the container, and returns at once; done waits.
func (c *container) stop() (done func()) {
	ended := make(chan string)
	go func() {
		out, err := c.y.podman(c.t, "stop", "-t", "15", c.name)
		if err != nil || strings.Contains(out, "SIGKILL") {
			out = fmt.Sprintf("podman stop: %v\n%s", err, out)
		} else {
			out = ""
		}
		ended <- out
	}()
	return func() {
		c.t.Helper()
		if text := <-ended; text != "" {
			c.t.Error(text)
		}
	}
}

// pid is that of the container's PID 1.
func (c *container) pid() int {
	c.t.Helper()
	out, err := c.y.podman(c.t, "inspect", "-f", "{{.State.Pid}}", c.name)
	pid, _ := strconv.Atoi(out)
	if err != nil || pid == 0 {
		c.t.Fatalf("podman inspect: %v\n%s", err, out)
	}
	return pid
}

func containerSignals(t *testing.T, y *yard) {
	c := y.catch(t, images+"lameduck")
	for _, s := range []sig.Signal{sig.HUP, sig.USR1, sig.USR2, sig.INT, sig.WINCH, sig.TERM} {
		c.kill(s)
		c.out.wait(t, "got "+s.String())
	}
	c.sendLine("exit 42")
	c.wantExit(42)
	if n := len(c.out.all()); n != 7 || len(c.err.all()) > 0 {
		t.Errorf("said %v %v", c.out.all(), c.err.all())
	}
}

func containerKilled(t *testing.T, y *yard) {
	c := y.catch(t, images+"lameduck")
	c.sendLine("killed TERM")
	c.wantExit(143)
	y.run(t, images+"lameduck", "/no-such-program").wantExit(127)
	y.run(t, images+"lameduck", "/sbin").wantExit(126)
	y.run(t, images+"docker", "/sbin").wantExit(126)
}

// containerTerminal: with a terminal, as entrypoint and as --init.
func containerTerminal(t *testing.T, y *yard) {
	for name, words := range map[string][]string{"entrypoint": {images + "lameduck"}, "init": {"--init", "--init-path", binary, images + "bare"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, call := y.runWords(slices.Concat([]string{"-t"}, longHold, words, catchCommand))
			s := startOnTerminal(t, false, call...)
			s.waitFor("ready")
			s.typeText(ctrlC)
			s.waitFor("got INT")
			pty.Setsize(s.tty, &pty.Winsize{Rows: 30, Cols: 100})
			s.waitFor("got WINCH")
			s.typeText(ctrlZ)
			s.waitFor("got TSTP")
			y.kill(t, id, sig.TERM)
			s.waitFor("TERM: holding 15 s")
			s.typeText(ctrlC) // goes to the command, and ends no hold
			s.waitFor("got INT")
			y.kill(t, id, sig.INT) // ends it
			s.waitFor("got USR1")
			s.typeText("exit 7\n")
			s.waitFor("(interrupt)")
			s.wantExit(7)
			for text, n := range map[string]int{"got INT": 2, "got TSTP": 1, "got USR1": 1, "got TERM": 0} {
				if got := s.count(text); got != n {
					t.Errorf("%q %d times, want %d", text, got, n)
				}
			}
		})
	}
}

// holding are the variables for a hold, and longHold for one that something else
// is to end before.
var (
	holding  = []string{"-e", "LAMEDUCK_DELAY=1", "-e", "LAMEDUCK_REWRITE=TERM:USR1"}
	longHold = []string{"-e", "LAMEDUCK_DELAY=15", "-e", "LAMEDUCK_GRACE_PERIOD=60", "-e", "LAMEDUCK_REWRITE=TERM:USR1"}
)

// containerStop: podman stop begins a hold, after which the command is sent the
// signal that it understands.
func containerStop(t *testing.T, y *yard) {
	y.catch(t, append(holding, images+"lameduck")...).wantHoldBy(sig.TERM)
}

// containerStopSignal: podman sends the image's STOPSIGNAL in TERM's place.
func containerStopSignal(t *testing.T, y *yard) {
	y.catch(t, append(holding, "--stop-signal", "SIGUSR1", images+"lameduck")...).wantHoldBy(sig.USR1)
}

// wantHoldBy stops a container, and wants a hold that trigger begins.
func (c *container) wantHoldBy(trigger sig.Signal) {
	c.t.Helper()
	done := c.stop()
	c.err.wait(c.t, fmt.Sprintf("%v: holding 1 s, then USR1", trigger))
	c.out.wait(c.t, "got USR1")
	c.sendLine("exit 3")
	c.wantExit(3)
	done()
	c.wantReport(trigger, "elapsed", time.Second, sig.USR1, 3)
	if got := fmt.Sprint(c.out.all()); got != "[ready got USR1]" {
		c.t.Errorf("the command said %s", got)
	}
}

// containerInterrupt: in a hold other signals pass, and INT ends it.
func containerInterrupt(t *testing.T, y *yard) {
	c := y.catch(t, append(longHold, images+"lameduck")...)
	done := c.stop()
	c.err.wait(t, "TERM: holding 15 s, then USR1")
	c.kill(sig.HUP)
	c.out.wait(t, "got HUP")
	c.kill(sig.INT)
	c.out.wait(t, "got USR1")
	c.sendLine("exit 3")
	c.wantExit(3)
	done()
	c.wantReport(sig.TERM, "interrupt", 0, sig.USR1, 3)
	if got := fmt.Sprint(c.out.all()); got != "[ready got HUP got USR1]" {
		t.Errorf("the command said %s", got)
	}
}

// containerInit: podman run --init, which calls "/run/podman-init -- COMMAND".
func containerInit(t *testing.T, y *yard) {
	c := y.catch(t, append(holding, "-e", "CATATONIT_X=1", "--init", "--init-path", binary, images+"bare")...)
	c.wantCall(append([]string{"/run/podman-init", "--"}, catchCommand...), "CATATONIT_X=1")
	c.wantHoldBy(sig.TERM)
	c = y.catch(t, "--init", "--init-path", binary, images+"bare")
	c.kill(sig.TERM)
	c.out.wait(t, "got TERM")
	c.sendLine("killed KILL")
	c.wantExit(137)
}

// containerDockerInit: the call that docker run --init makes.
func containerDockerInit(t *testing.T, y *yard) {
	c := y.catch(t, append(holding, "-e", "TINI_KILL_PROCESS_GROUP=1", images+"docker")...)
	c.wantCall(append([]string{"/sbin/docker-init", "--"}, catchCommand...), "TINI_KILL_PROCESS_GROUP=1")
	c.wantHoldBy(sig.TERM)
}

// wantCall wants PID 1 to be called so, and its command to have one variable but
// none of lameduck's.
func (c *container) wantCall(call []string, variable string) {
	c.t.Helper()
	pid := c.pid()
	if got := list0(fmt.Sprintf("/proc/%d/cmdline", pid)); !slices.Equal(got, call) {
		c.t.Errorf("PID 1 is %q, want %q", got, call)
	}
	env := list0(fmt.Sprintf("/proc/%d/environ", onlyChild(c.t, pid)))
	ours := func(entry string) bool { return strings.HasPrefix(entry, "LAMEDUCK_") }
	if !slices.Contains(env, variable) || slices.ContainsFunc(env, ours) {
		c.t.Errorf("the command's environment is %q", env)
	}
}

// list0 are the words of a file that ends each with a zero.
func list0(path string) []string {
	text, _ := os.ReadFile(path)
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// containerPod: as "pause" it is the first process of a pod, and reaps for all of
// it where its containers share a PID namespace.
func containerPod(t *testing.T, y *yard) {
	words := strings.Fields("pod create --name pod --share pid --infra-name infra --infra-command /pause --infra-image " + images + "pause")
	if out, err := y.podman(t, words...); err != nil {
		t.Fatalf("podman pod create: %v\n%s", err, out)
	}
	c := y.catch(t, "--pod", "pod", images+"lameduck")
	c.kill(sig.KILL) // and leaves its command to the pod
	c.wantExit(137)
	y.run(t, "--pod", "pod", images+"bare", "/helper", "helper", "zombies").wantExit(0)
	if out, err := y.podman(t, "pod", "stop", "-t", "15", "pod"); err != nil || strings.Contains(out, "SIGKILL") {
		t.Errorf("podman pod stop: %v\n%s", err, out)
	}
	if code, err := y.podman(t, "inspect", "-f", "{{.State.ExitCode}}", "infra"); code != "0" {
		t.Errorf("pause left with %s, %v", code, err)
	}
}

// containerHardened: what a container may be denied takes nothing from the stop.
func containerHardened(t *testing.T, y *yard) {
	confined := []string{"--cap-drop=ALL", "--security-opt=no-new-privileges"}
	for _, c := range []struct {
		name  string
		flags []string
		shows []string // by /proc/PID/status or mountinfo, of PID 1 and of the command
	}{
		{"default seccomp profile", nil, []string{"\nSeccomp:\t2\n"}},
		{"read-only", []string{"--read-only"}, []string{" / / ro,"}},
		{"random user", []string{"--user=65534:65534"}, []string{"\nUid:\t65534\t65534\t65534\t65534\n"}},
		{"no capabilities", confined, []string{"\nCapBnd:\t0000000000000000\n", "\nNoNewPrivs:\t1\n"}},
		{"few processes", []string{"--pids-limit=24"}, nil},
		{"all", append(confined, "--read-only", "--user=65534:65534", "--pids-limit=24"),
			[]string{"\nSeccomp:\t2\n", " / / ro,", "\nUid:\t65534\t", "\nCapEff:\t0000000000000000\n", "\nNoNewPrivs:\t1\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := y.catch(t, slices.Concat(holding, c.flags, []string{images + "lameduck"})...)
			pid := b.pid()
			for _, pid := range []int{pid, onlyChild(t, pid)} {
				status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
				mounts, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
				for _, want := range c.shows {
					if !strings.Contains(string(status)+string(mounts), want) {
						t.Errorf("%q is not so:\n%s\n%s", want, status, mounts)
					}
				}
			}
			b.wantHoldBy(sig.TERM)
		})
	}
}
