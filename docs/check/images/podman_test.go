package images

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/docs/check/internal/podman"
)

// root is the checkout; examples has the Dockerfiles.
const (
	root     = "../../.."
	examples = root + "/docs/examples/docker"
)

// engine is a podman whose containers have networks.
type engine struct {
	*podman.Podman
	containers atomic.Int32 // so far
}

// newEngine skips the test where podman does not work. The store has the image of a
// release, which Dockerfile.release makes of the binary that make build has left.
func newEngine(t *testing.T) *engine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give the containers a network")
	}
	podman.Needs(t, "ip", "nsenter", "ldd")
	e := &engine{Podman: podman.New(t)}
	e.release(t)
	if out, err := e.Run("run", "--rm", "--pull=never", podman.Release, "--version"); err != nil {
		t.Skipf("podman and runc cannot run a container: %v\n%s", err, out)
	}
	return e
}

// release builds Dockerfile.release in a context like that of a release.
func (e *engine) release(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(root + "/lameduck")
	if err != nil {
		t.Fatalf("make build comes first: %v", err)
	}
	platform := "linux/" + runtime.GOARCH
	context := filepath.Join(e.Dir, "release")
	dir := filepath.Join(context, platform)
	os.MkdirAll(dir, 0o755)
	if err := os.WriteFile(dir+"/lameduck", content, 0o755); err != nil {
		t.Fatal(err)
	}
	e.build(t, podman.Release, root+"/Dockerfile.release", context, "--platform="+platform)
}

// build makes an image of a Dockerfile. FROM needs no prefix for an image in the store.
func (e *engine) build(t *testing.T, name, dockerfile, context string, flags ...string) {
	t.Helper()
	words := append([]string{"build", "-q", "--pull=never", "-f", dockerfile, "-t", podman.Stored(name)}, flags...)
	e.Must(t, append(words, context)...)
}

// config is the configuration of an image.
type config struct {
	User, StopSignal string
	Entrypoint, Cmd  []string
}

func (e *engine) config(t *testing.T, image string) (c config) {
	t.Helper()
	text := e.Must(t, "image", "inspect", "-f", "{{json .Config}}", image)
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("podman image inspect: %v\n%s", err, text)
	}
	return c
}

// container is a running container.
type container struct {
	t *testing.T
	*engine
	name, address string
}

// start runs a container with a network of its own, whose other end is in this namespace.
// words are flags of podman run, the image, and the command. The container ends after two
// minutes at the latest.
func (e *engine) start(t *testing.T, words ...string) *container {
	t.Helper()
	n := e.containers.Add(1)
	c := &container{t, e, fmt.Sprintf("c%d", n), fmt.Sprintf("10.77.%d.2", n)}
	e.Must(t, append([]string{"run", "-d", "--timeout", "120", "--name", c.name}, words...)...)
	pid := c.state("Pid")
	output(t, "ip", "link", "add", c.name, "type", "veth", "peer", "name", "eth0", "netns", pid)
	output(t, "ip", "addr", "add", fmt.Sprintf("10.77.%d.1/24", n), "dev", c.name)
	output(t, "ip", "link", "set", c.name, "up")
	output(t, "nsenter", "-n", "-t", pid, "ip", "addr", "add", c.address+"/24", "dev", "eth0")
	output(t, "nsenter", "-n", "-t", pid, "ip", "link", "set", "eth0", "up")
	output(t, "nsenter", "-n", "-t", pid, "ip", "route", "add", "default", "via", fmt.Sprintf("10.77.%d.1", n))
	return c
}

// state returns a field of the container's state: Pid, Status, ExitCode.
func (c *container) state(field string) string {
	c.t.Helper()
	return c.Must(c.t, "inspect", "-f", "{{.State."+field+"}}", c.name)
}

// logs returns both output streams.
func (c *container) logs() string {
	c.t.Helper()
	return c.Must(c.t, "logs", c.name)
}

// stopped is the outcome of a stop.
type stopped struct {
	took   time.Duration
	killed bool // at the end of the grace period
	err    error
}

// stop has podman stop the container. The channel gets the outcome at the end.
func (c *container) stop(grace time.Duration) <-chan stopped {
	done := make(chan stopped, 1)
	go func() {
		begun := time.Now()
		out, err := c.Run("stop", "-t", fmt.Sprint(grace.Seconds()), c.name)
		done <- stopped{time.Since(begun), strings.Contains(out, "SIGKILL"), err}
	}()
	return done
}
