package images

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// settings make podman need little of the machine, and leave alone the podman that
// may run there. (Limits above our own cannot be given to a container.)
const settings = `
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
[containers]
netns = "none"
log_driver = "k8s-file"
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
`

// podman is one with a store of its own.
type podman struct {
	dir string
	n   atomic.Int32 // containers so far
}

// newPodman skips where none works. Its store has lameduck:1, made by
// Dockerfile.release of the binary that `make build` has left.
func newPodman(t *testing.T) *podman {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give the containers a network")
	}
	needs(t, "podman", "runc", "conmon", "ip", "nsenter", "ldd")
	dir, err := os.MkdirTemp("", "images") // t.TempDir's is too long for podman's sockets
	if err != nil {
		t.Fatal(err)
	}
	p := &podman{dir: dir}
	t.Cleanup(p.remove(t))
	if err := os.WriteFile(dir+"/containers.conf", []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := p.run("ps", "-a"); err != nil {
		t.Skipf("podman does not work: %v\n%s", err, out)
	}
	p.release(t)
	if out, err := p.run("run", "--rm", "lameduck:1", "--version"); err != nil {
		t.Skipf("podman and runc cannot run a container: %v\n%s", err, out)
	}
	return p
}

// remove ends and removes all there is.
func (p *podman) remove(t *testing.T) func() {
	return func() {
		p.run("rm", "-a", "-f", "-t", "0")
		p.run("image", "umount", "-a", "-f")
		p.run("rmi", "-a", "-f")
		exec.Command("umount", "-l", p.dir+"/root/overlay").Run()
		if err := os.RemoveAll(p.dir); err != nil {
			t.Error(err)
		}
	}
}

// release builds Dockerfile.release in a context like that of a release.
func (p *podman) release(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(root + "/lameduck")
	if err != nil {
		t.Fatalf("make build comes first: %v", err)
	}
	platform := "linux/" + runtime.GOARCH
	context := filepath.Join(p.dir, "release")
	dir := filepath.Join(context, platform)
	os.MkdirAll(dir, 0o755)
	if err := os.WriteFile(dir+"/lameduck", content, 0o755); err != nil {
		t.Fatal(err)
	}
	p.build(t, "lameduck:1", root+"/Dockerfile.release", context, "--platform="+platform)
}

// root is the checkout.
const root = "../.."

// run calls podman and waits.
func (p *podman) run(words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "podman", append([]string{"--root", p.dir + "/root", "--runroot", p.dir + "/run", "--tmpdir", p.dir + "/tmp"}, words...)...)
	cmd.Env = append(os.Environ(), "HOME="+p.dir, "CONTAINERS_CONF="+p.dir+"/containers.conf")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// must is run where it must not fail.
func (p *podman) must(t *testing.T, words ...string) string {
	t.Helper()
	out, err := p.run(words...)
	if err != nil {
		t.Fatalf("podman %q: %v\n%s", words, err, out)
	}
	return out
}

// build makes an image of a Dockerfile. The prefix keeps podman from looking for
// images elsewhere; in FROM it finds them without.
func (p *podman) build(t *testing.T, name, dockerfile, context string, flags ...string) {
	t.Helper()
	words := append([]string{"build", "-q", "--pull=never", "-f", dockerfile, "-t", "localhost/" + name}, flags...)
	p.must(t, append(words, context)...)
}

// config is what an image says of itself.
type config struct {
	User, StopSignal string
	Entrypoint, Cmd  []string
}

func (p *podman) config(t *testing.T, image string) (c config) {
	t.Helper()
	text := p.must(t, "image", "inspect", "-f", "{{json .Config}}", image)
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("podman image inspect: %v\n%s", err, text)
	}
	return c
}

// container is one that runs.
type container struct {
	t *testing.T
	*podman
	name, address string
}

// start runs a container with a network of its own, of which the other end is here;
// words are flags of podman run, the image, and the command. It ends after two
// minutes at the latest.
func (p *podman) start(t *testing.T, words ...string) *container {
	t.Helper()
	n := p.n.Add(1)
	c := &container{t, p, fmt.Sprintf("c%d", n), fmt.Sprintf("10.77.%d.2", n)}
	p.must(t, append([]string{"run", "-d", "--timeout", "120", "--name", c.name}, words...)...)
	pid := c.state("Pid")
	output(t, "ip", "link", "add", c.name, "type", "veth", "peer", "name", "eth0", "netns", pid)
	output(t, "ip", "addr", "add", fmt.Sprintf("10.77.%d.1/24", n), "dev", c.name)
	output(t, "ip", "link", "set", c.name, "up")
	output(t, "nsenter", "-n", "-t", pid, "ip", "addr", "add", c.address+"/24", "dev", "eth0")
	output(t, "nsenter", "-n", "-t", pid, "ip", "link", "set", "eth0", "up")
	output(t, "nsenter", "-n", "-t", pid, "ip", "route", "add", "default", "via", fmt.Sprintf("10.77.%d.1", n))
	return c
}

// state is a field of it: Pid, Status, ExitCode.
func (c *container) state(field string) string {
	c.t.Helper()
	return c.must(c.t, "inspect", "-f", "{{.State."+field+"}}", c.name)
}

// logs are its streams.
func (c *container) logs() string {
	c.t.Helper()
	return c.must(c.t, "logs", c.name)
}

// stopped is how a stop went.
type stopped struct {
	took   time.Duration
	killed bool // podman's patience ended
	err    error
}

// stop has podman stop it; the channel says when it is gone.
func (c *container) stop(grace time.Duration) <-chan stopped {
	done := make(chan stopped, 1)
	go func() {
		begun := time.Now()
		out, err := c.run("stop", "-t", fmt.Sprint(grace.Seconds()), c.name)
		done <- stopped{time.Since(begun), strings.Contains(out, "SIGKILL"), err}
	}()
	return done
}
