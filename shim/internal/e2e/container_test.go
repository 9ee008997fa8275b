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

// TestContainer runs lameduck as the init of real containers, with podman and runc. The
// images are made here, of lameduck and the test binary: no network is needed.
func TestContainer(t *testing.T) {
	if !*containers {
		t.Skip("only with -containers: .ci/run containers")
	}
	p := newPodman(t)
	for name, test := range map[string]func(*testing.T, *podman){
		"signals": containerSignals, "killed": containerKilled, "terminal": containerTerminal,
		"stop": containerStop, "stopsignal": containerStopSignal, "interrupt": containerInterrupt,
		"init": containerInit, "docker-init": containerDockerInit,
		"hardened": containerHardened, "until": containerUntil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

// podman calls podman with a store and a configuration of its own, and four images: with
// lameduck as the entrypoint, with lameduck named docker-init, without an entrypoint,
// and with a process that only keeps the namespaces of a pod.
type podman struct {
	dir string
	n   atomic.Int32 // containers so far
}

// catchCommand is the command in the containers.
var catchCommand = []string{"/helper", "helper", "catch"}

// podmanConfig needs little of the machine, and keeps apart from another podman on the
// machine. The limits are low, because a container cannot have higher limits than the test.
const podmanConfig = `
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

// imagePrefix begins the names of the images. podman never pulls a name with this prefix.
const imagePrefix = "localhost/"

func newPodman(t *testing.T) *podman {
	t.Helper()
	needs(t, "podman", "runc", "conmon", "go")
	dir, err := os.MkdirTemp("", "podman") // the path of t.TempDir is too long for podman's sockets
	if err != nil {
		t.Fatal(err)
	}
	p := &podman{dir: dir}
	if err := os.WriteFile(p.dir+"/containers.conf", []byte(podmanConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Unmount(p.dir+"/root/overlay", unix.MNT_DETACH)
		if err := os.RemoveAll(p.dir); err != nil {
			t.Error(err)
		}
	})
	if out, err := p.call(t, "ps", "-a"); err != nil {
		t.Skipf("podman ps fails: %v\n%s", err, out)
	}
	t.Cleanup(func() { p.clear(t) })
	image := p.image(t)
	for name, entrypoint := range map[string]string{"bare": `[]`, "lameduck": `["/lameduck"]`, "docker": `["/sbin/docker-init", "--"]`, "pause": `["/pause", "helper", "catch"]`} {
		if out, err := p.call(t, "import", "-q", "--change", "ENTRYPOINT "+entrypoint, image, imagePrefix+name); err != nil {
			t.Skipf("podman import fails: %v\n%s", err, out)
		}
	}
	if out, err := p.call(t, "run", imagePrefix+"bare", "/helper", "helper", "zombies"); err != nil {
		t.Skipf("podman run fails: %v\n%s", err, out)
	}
	return p
}

// image writes a root file system: lameduck under two names, and the test binary, built
// without a C library.
func (p *podman) image(t *testing.T) (path string) {
	t.Helper()
	helper := filepath.Join(p.dir, "helper")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-s -w", "-o", helper, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("cannot build the test binary: %v\n%s", err, out)
	}
	path = filepath.Join(p.dir, "image.tar")
	file := testutil.Must(os.Create(path))
	defer file.Close()
	archive := tar.NewWriter(file)
	for name, source := range map[string]string{"lameduck": binary, "helper": helper} {
		content := testutil.Must(os.ReadFile(source))
		archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))})
		archive.Write(content)
	}
	archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "sbin/docker-init", Linkname: "/lameduck"})
	archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "pause", Linkname: "helper"})
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// clear removes all pods, containers and images.
func (p *podman) clear(t *testing.T) {
	for _, words := range [][]string{{"pod", "rm", "-a", "-f", "-t", "0"}, {"rm", "-a", "-f", "-t", "0"}, {"rmi", "-a", "-f"}} {
		if out, err := p.call(t, words...); err != nil {
			t.Errorf("podman %v: %v\n%s", words, err, out)
		}
	}
}

// callWords returns the command line of a call.
func (p *podman) callWords(args ...string) []string {
	return append([]string{"env", "HOME=" + p.dir, "CONTAINERS_CONF=" + p.dir + "/containers.conf",
		"podman", "--root", p.dir + "/root", "--runroot", p.dir + "/run", "--tmpdir", p.dir + "/tmp"}, args...)
}

// call runs podman and returns its output, both streams.
func (p *podman) call(t *testing.T, args ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testutil.Patience)
	defer cancel()
	words := p.callWords(args...)
	text, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	return strings.TrimSpace(string(text)), err
}

// container is a container with its streams connected to the test.
type container struct {
	*box
	podman *podman
	name   string
}

// run starts a container. words are flags of podman run, the image, and the command.
func (p *podman) run(t *testing.T, words ...string) *container {
	t.Helper()
	name, words := p.runWords(words)
	return &container{startProgram(t, nil, syscall.SysProcAttr{}, words...), p, name}
}

// runWords returns the call for a container, with a limit of one minute on its lifetime.
func (p *podman) runWords(words []string) (name string, call []string) {
	name = fmt.Sprintf("c%d", p.n.Add(1))
	return name, p.callWords(append([]string{"run", "-i", "--timeout", "60", "--name", name}, words...)...)
}

// catch starts a container whose command prints the signals that the command catches.
func (p *podman) catch(t *testing.T, words ...string) *container {
	t.Helper()
	c := p.run(t, append(words, catchCommand...)...)
	c.out.wait(t, "ready")
	return c
}

// kill sends a signal with podman kill.
func (c *container) kill(s sig.Signal) {
	c.t.Helper()
	c.podman.kill(c.t, c.name, s)
}

func (p *podman) kill(t *testing.T, name string, s sig.Signal) {
	t.Helper()
	if out, err := p.call(t, "kill", "-s", "SIG"+s.String(), name); err != nil {
		t.Errorf("podman kill: %v\n%s", err, out)
	}
}

// stop starts podman stop and returns at once. done waits for the end of podman stop.
func (c *container) stop() (done func()) {
	ended := make(chan string)
	go func() {
		out, err := c.podman.call(c.t, "stop", "-t", "15", c.name)
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

// pid returns the pid, in the test's namespace, of the container's PID 1.
func (c *container) pid() int {
	c.t.Helper()
	out, err := c.podman.call(c.t, "inspect", "-f", "{{.State.Pid}}", c.name)
	pid, _ := strconv.Atoi(out)
	if err != nil || pid == 0 {
		c.t.Fatalf("podman inspect: %v\n%s", err, out)
	}
	return pid
}

func containerSignals(t *testing.T, p *podman) {
	c := p.catch(t, imagePrefix+"lameduck")
	for _, s := range []sig.Signal{sig.HUP, sig.USR1, sig.USR2, sig.INT, sig.WINCH, sig.TERM} {
		c.kill(s)
		c.out.wait(t, "got "+s.String())
	}
	c.sendLine("exit 42")
	c.wantExit(42)
	if n := len(c.out.all()); n != 7 || len(c.err.all()) > 0 {
		t.Errorf("stdout %v, stderr %v; want 7 lines and no line", c.out.all(), c.err.all())
	}
}

func containerKilled(t *testing.T, p *podman) {
	c := p.catch(t, imagePrefix+"lameduck")
	c.sendLine("killed TERM")
	c.wantExit(143)
	p.run(t, imagePrefix+"lameduck", "/no-such-program").wantExit(127)
	p.run(t, imagePrefix+"lameduck", "/sbin").wantExit(126)
	p.run(t, imagePrefix+"docker", "/sbin").wantExit(126)
}

// containerTerminal: keys and signals with a terminal, as entrypoint and as --init.
func containerTerminal(t *testing.T, p *podman) {
	for name, words := range map[string][]string{"entrypoint": {imagePrefix + "lameduck"}, "init": {"--init", "--init-path", binary, imagePrefix + "bare"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, call := p.runWords(slices.Concat([]string{"-t"}, longHold, words, catchCommand))
			s := startOnTerminal(t, false, call...)
			s.waitFor("ready")
			s.typeText(ctrlC)
			s.waitFor("got INT")
			pty.Setsize(s.tty, &pty.Winsize{Rows: 30, Cols: 100})
			s.waitFor("got WINCH")
			s.typeText(ctrlZ)
			s.waitFor("got TSTP")
			p.kill(t, id, sig.TERM)
			s.waitFor("TERM: holding 15 s")
			s.typeText(ctrlC) // for the command; the hold goes on
			s.waitFor("got INT")
			p.kill(t, id, sig.INT) // ends the hold
			s.waitFor("got USR1")
			s.typeText("exit 7\n")
			s.waitFor("(INT arrived)")
			s.wantExit(7)
			for text, n := range map[string]int{"got INT": 2, "got TSTP": 1, "got USR1": 1, "got TERM": 0} {
				if got := s.count(text); got != n {
					t.Errorf("%q appears %d times, want %d", text, got, n)
				}
			}
		})
	}
}

// Flags of podman run for a hold: shortHold ends by itself, after one second; longHold is
// ended by a signal.
var (
	shortHold = []string{"-e", "LAMEDUCK_DELAY=1", "-e", "LAMEDUCK_REWRITE=TERM:USR1"}
	longHold  = []string{"-e", "LAMEDUCK_DELAY=15", "-e", "LAMEDUCK_GRACE_PERIOD=60", "-e", "LAMEDUCK_REWRITE=TERM:USR1"}
)

// containerStop: podman stop starts a hold. Then the command gets the rewritten signal.
func containerStop(t *testing.T, p *podman) {
	p.catch(t, append(shortHold, imagePrefix+"lameduck")...).wantHoldBy(sig.TERM)
}

// containerStopSignal: podman sends the image's STOPSIGNAL instead of TERM.
func containerStopSignal(t *testing.T, p *podman) {
	p.catch(t, append(shortHold, "--stop-signal", "SIGUSR1", imagePrefix+"lameduck")...).wantHoldBy(sig.USR1)
}

// wantHoldBy stops a container with podman stop, and wants a hold with this trigger.
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
		c.t.Errorf("the command printed %s", got)
	}
}

// containerInterrupt: during a hold HUP is passed on to the command, and INT ends the hold.
func containerInterrupt(t *testing.T, p *podman) {
	c := p.catch(t, append(longHold, imagePrefix+"lameduck")...)
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
		t.Errorf("the command printed %s", got)
	}
}

// containerInit: podman run --init, which runs "/run/podman-init -- COMMAND".
func containerInit(t *testing.T, p *podman) {
	c := p.catch(t, append(shortHold, "-e", "CATATONIT_X=1", "--init", "--init-path", binary, imagePrefix+"bare")...)
	c.wantCall(append([]string{"/run/podman-init", "--"}, catchCommand...), "CATATONIT_X=1")
	c.wantHoldBy(sig.TERM)
	c = p.catch(t, "--init", "--init-path", binary, imagePrefix+"bare")
	c.kill(sig.TERM)
	c.out.wait(t, "got TERM")
	c.sendLine("killed KILL")
	c.wantExit(137)
}

// containerDockerInit: docker run --init, which runs "/sbin/docker-init -- COMMAND".
func containerDockerInit(t *testing.T, p *podman) {
	c := p.catch(t, append(shortHold, "-e", "TINI_KILL_PROCESS_GROUP=1", imagePrefix+"docker")...)
	c.wantCall(append([]string{"/sbin/docker-init", "--"}, catchCommand...), "TINI_KILL_PROCESS_GROUP=1")
	c.wantHoldBy(sig.TERM)
}

// wantCall wants call as the command line of PID 1, and wants variable but no LAMEDUCK_
// variable in the environment of the command.
func (c *container) wantCall(call []string, variable string) {
	c.t.Helper()
	pid := c.pid()
	if got := readNulList(fmt.Sprintf("/proc/%d/cmdline", pid)); !slices.Equal(got, call) {
		c.t.Errorf("PID 1 is %q, want %q", got, call)
	}
	env := readNulList(fmt.Sprintf("/proc/%d/environ", onlyChild(c.t, pid)))
	isOurs := func(entry string) bool { return strings.HasPrefix(entry, "LAMEDUCK_") }
	if !slices.Contains(env, variable) || slices.ContainsFunc(env, isOurs) {
		c.t.Errorf("the command's environment is %q", env)
	}
}

// readNulList returns the words of a file in which each word ends with a zero byte.
func readNulList(path string) []string {
	text, _ := os.ReadFile(path)
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// containerHardened: a stop works in full under each restriction of a hardened container.
func containerHardened(t *testing.T, p *podman) {
	confined := []string{"--cap-drop=ALL", "--security-opt=no-new-privileges"}
	for _, c := range []struct {
		name  string
		flags []string
		shows []string // texts in /proc/PID/status or mountinfo, of PID 1 and of the command
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
			b := p.catch(t, slices.Concat(shortHold, c.flags, []string{imagePrefix + "lameduck"})...)
			pid := b.pid()
			for _, pid := range []int{pid, onlyChild(t, pid)} {
				status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
				mounts, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
				for _, want := range c.shows {
					if !strings.Contains(string(status)+string(mounts), want) {
						t.Errorf("%q is missing in:\n%s\n%s", want, status, mounts)
					}
				}
			}
			b.wantHoldBy(sig.TERM)
		})
	}
}
