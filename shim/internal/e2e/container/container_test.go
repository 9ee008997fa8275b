// Package container_test runs lameduck as the init of real containers, with podman and runc.
// The images are made of lameduck and the test binary: no network is needed.
package container_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

var containers = flag.Bool("containers", false, "run lameduck in real containers, with podman and runc")

// TestMain is the process that keeps the namespaces of a pod, under its name.
func TestMain(m *testing.M) {
	if os.Args[0] == "/pause" {
		unix.Pause()
	}
	box.Main(m, nil)
}

// TestContainer runs all tests beside each other, with one store of images.
func TestContainer(t *testing.T) {
	if !*containers {
		t.Skip("only with -containers: .ci/run containers")
	}
	p := newPodman(t)
	for name, test := range map[string]func(*testing.T, *podman){
		"terminal": containerTerminal, "stop": containerStop, "until": containerUntil, "close idle": containerCloseIdle,
		"hook": containerHook,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

// podman calls podman with a store and a configuration of its own.
type podman struct {
	words []string
	n     atomic.Int32 // containers so far
}

// catch is the command in the containers.
var catch = []string{"/helper", "helper", "catch"}

func newPodman(t *testing.T) *podman {
	t.Helper()
	box.Needs(t, "podman", "runc", "conmon", "go", "tar")
	dir := testutil.Must(os.MkdirTemp("", "podman")) // the path of t.TempDir is too long for podman's sockets
	p := &podman{words: []string{"env", "HOME=" + dir, "CONTAINERS_CONF=" +
		testutil.Path("shim/internal/e2e/container/testdata/containers.conf"),
		"podman", "--root", dir + "/root", "--runroot", dir + "/run", "--tmpdir", dir + "/tmp"}}
	t.Cleanup(func() {
		for _, words := range [][]string{{"pod", "rm", "-a", "-f", "-t", "0"}, {"rm", "-a", "-f", "-t", "0"},
			{"rmi", "-a", "-f"}} {
			p.call(t, words...)
		}
		unix.Unmount(dir+"/root/overlay", unix.MNT_DETACH)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	build := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-o", dir+"/helper", ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	for _, cmd := range []*exec.Cmd{build, exec.Command("testdata/images.sh",
		append([]string{box.Binary, dir}, p.words...)...)} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("cannot make images: %v\n%s", err, out)
		}
	}
	return p
}

// call runs podman and returns its output, both streams.
func (p *podman) call(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*testutil.Patience)
	defer cancel()
	words := append(slices.Clone(p.words), args...)
	text, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Errorf("podman %v: %v\n%s", args, err, text)
	}
	return strings.TrimSpace(string(text))
}

// container is a container with its streams connected to the test.
type container struct {
	*box.Box
	podman *podman
	name   string
}

// command returns the name and the call for a container, with a limit of one minute on its
// lifetime. words are flags of podman run, the image, and the command.
func (p *podman) command(words ...string) (name string, call []string) {
	name = fmt.Sprintf("c%d", p.n.Add(1))
	return name, slices.Concat(p.words, []string{"run", "-i", "--timeout", "60", "-e", "LAMEDUCK_LOG_FORMAT=json",
		"--name", name}, words)
}

// catch starts a container from within a network, its host's. Its command prints the signals that
// the command catches, and serves at the addresses.
func (p *podman) catch(t *testing.T, n *box.Network, flags string, addresses ...string) *container {
	t.Helper()
	name, call := p.command(slices.Concat(box.Words(flags), catch, addresses)...)
	c := &container{box.Setup{Outside: true, Network: n}.Start(t, call...), p, name}
	c.Ready()
	return c
}

// Exit makes the command exit with 7; podman takes its time then.
func (c *container) Exit() {
	c.T.Helper()
	c.Send("exit 7")
	c.WantExit(7)
}

// stop starts podman stop and returns at once. done waits for its end.
func (c *container) stop() (done func()) {
	ended := make(chan string)
	go func() { ended <- c.podman.call(c.T, "stop", "-t", "50", c.name) }()
	return func() {
		if out := <-ended; strings.Contains(out, "SIGKILL") {
			c.T.Error(out)
		}
	}
}

// containerStop: podman stop starts a hold, by TERM or by the image's STOPSIGNAL, as the entrypoint,
// under podman run --init, which runs "/run/podman-init -- COMMAND", and docker run --init, which
// runs "/sbin/docker-init -- COMMAND", and under each restriction of a hardened container. "shows"
// is what /proc has of PID 1.
func containerStop(t *testing.T, p *podman) {
	for _, c := range box.Table(`
		case          | trigger | shows                         | flags
		entrypoint    | TERM    | Seccomp:	2                 | localhost/lameduck
		STOPSIGNAL    | USR1    | /lameduck                     | --stop-signal SIGUSR1 localhost/lameduck
		podman --init | TERM    | /run/podman-init -- /helper   | INIT
		docker --init | TERM    | /sbin/docker-init -- /helper  | localhost/docker
		read-only     | TERM    | / / ro,                       | --read-only localhost/lameduck
		nobody        | TERM    | Uid:	65534	65534	65534	65534 | --user=65534:65534 localhost/lameduck
		confined      | TERM    | CapBnd:	0000000000000000      | CONFINED localhost/lameduck
		few processes | TERM    |                               | --pids-limit=24 localhost/lameduck
		all of it     | TERM    | NoNewPrivs:	1                 | CONFINED --read-only --user=65534:65534 --pids-limit=24 localhost/lameduck
	`) {
		t.Run(c["case"], func(t *testing.T) { // one after the other: a machine starts few containers at once in time
			flags := strings.NewReplacer("CONFINED", confined, "INIT", byInit).Replace(c["flags"])
			b := p.catch(t, nil, "-e LAMEDUCK_DELAY=1 -e LAMEDUCK_REWRITE=TERM:USR1 "+flags)
			pid := p.call(t, "inspect", "-f", "{{.State.Pid}}", b.name)
			words := box.ReadLines("/proc/" + pid + "/cmdline")
			lines := slices.Concat(box.ReadLines("/proc/"+pid+"/status"), box.ReadLines("/proc/"+pid+"/mountinfo"))
			if text := strings.Join(words, " ") + "\n" + strings.Join(lines, "\n"); !strings.Contains(text, c["shows"]) {
				t.Errorf("PID 1 is without %q: %s", c["shows"], text)
			}
			done := b.stop()
			b.Play("got USR1 / > exit 7 / exits 7 / never got TERM")
			done()
			if r := b.Report(); r.Trigger != c["trigger"] || r.Ended != "elapsed" || r.HeldMS < 1000 || r.Signals() != "USR1" ||
				r.ExitCode != 7 {
				t.Errorf("report %+v", r)
			}
		})
	}
}

// byInit are the flags of podman run --init, and confined those of a hardened container.
var byInit = "--init --init-path " + box.Binary + " localhost/bare"

const confined = "--cap-drop=ALL --security-opt=no-new-privileges"

// containerTerminal: keys and signals with a terminal, as entrypoint and as --init.
func containerTerminal(t *testing.T, p *podman) {
	for _, image := range []string{"localhost/lameduck", byInit} {
		flags := "-t -e LAMEDUCK_DELAY=15 -e LAMEDUCK_GRACE_PERIOD=60 -e LAMEDUCK_REWRITE=TERM:USR1 " + image
		name, call := p.command(append(box.Words(flags), catch...)...)
		s := box.Setup{Outside: true, Terminal: true}.Start(t, call...)
		s.Acts = map[string]func(){
			"kill TERM": func() { p.call(t, "kill", "-s", "TERM", name) },
			"kill INT":  func() { p.call(t, "kill", "-s", "INT", name) },
		}
		s.Play("ready / ^C / got INT / resize / got WINCH / ^Z / got TSTP / kill TERM / holding / " +
			"^C / got INT / kill INT / got USR1 / > exit 7 / exits 7 / once got TSTP / once got USR1 / never got TERM")
		if n := s.Out.Count("got INT"); n != 2 { // the first INT of the hold is the command's alone
			t.Errorf("got INT %d times", n)
		}
	}
}

// containerUntil: in a pod, as the user nobody and with podman's seccomp profile, another
// container's requests prolong the hold until the last. Connections between other
// containers do not count.
func containerUntil(t *testing.T, p *podman) {
	const pod = "pod create --name until --network none --share net " +
		"--infra-name until-infra --infra-command /pause --infra-image localhost/pause"
	p.call(t, box.Words(pod)...)
	begin := func(image string, addresses ...string) *container {
		return p.catch(t, nil, "--pod until --user=65534:65534 "+confined+" localhost/"+image, addresses...)
	}
	server := begin("lameduck --until=quiet --quiet-for=1 --grace-period=30 --", "[::]:8080")
	client, busy := begin("bare"), begin("bare")
	client.Do("listen [::]:9090")
	busy.Do("call 127.0.0.1:9090")
	done := server.stop()
	server.Err.Wait("holding")
	last := server.Busy(time.Second, 250*time.Millisecond, func() { client.Send("open 127.0.0.1:8080") })
	r := server.WantHold(last, 650*time.Millisecond, "quiet")
	done()
	if r.Observer != "sock_diag" || r.Scope != "cgroup" && r.Scope != "descriptors" {
		t.Errorf("report %+v, want the observer sock_diag, and a scope of cgroup or descriptors", r)
	}
}

// containerHook: a hook leaves the hold to its own container's lameduck, whoever asks, and not to that of
// another one in the same PID namespace.
func containerHook(t *testing.T, p *podman) {
	holder := p.catch(t, nil, "localhost/lameduck --until=quiet --grace-period=30 --", "127.0.0.1:0")
	other := p.catch(t, nil, "--pid=container:"+holder.name+" localhost/bare", "127.0.0.1:0")
	for _, c := range []struct{ user, container, says string }{
		{"0", holder.name, "PID 1 is a lameduck that holds by itself"},
		{"65534", holder.name, "PID 1 is a lameduck that holds by itself"},
		{"0", other.name, " s (quiet) of 30 s"},
	} {
		out := p.call(t, "exec", "--user="+c.user, c.container, "/lameduck", "hold", "--quiet-for=1", "--grace-period=30")
		if !strings.Contains(out, c.says) {
			t.Errorf("the hook in %s says %s, want %q", c.container, out, c.says)
		}
	}
	other.Exit()
	p.call(t, "rm", "-f", other.name) // before the other, on which it depends
	holder.Exit()
}

// containerCloseIdle: with the seccomp profile of the examples, which is containerd's default and pidfd_getfd, all
// kept connections are closed. What the default comes to, TestRefused shows.
func containerCloseIdle(t *testing.T, p *podman) {
	profile := testutil.Path("docs/examples/kubernetes/seccomp/lameduck.json")
	c := p.catch(t, box.NewNetwork(t), "--network host --user=65534:65534 "+confined+" --security-opt=seccomp="+profile+
		" localhost/lameduck --until=quiet --close-idle --quiet-for=3 --grace-period=40 --", "127.0.0.1:0")
	allClosed, done := c.Talkers(24), c.stop()
	c.Out.Wait("got TERM")
	c.Exit()
	allClosed()
	done()
	c.WantWarning("")
	if r := c.Report(); r.Ended != "quiet" || r.ClosedIdle != 24 {
		t.Errorf("report %+v, want quiet and 24 closed connections", r)
	}
}
