package k8s

import (
	"archive/tar"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// patience is how long podman may take, on a busy machine.
const patience = 2 * time.Minute

// settings make podman need little of the machine, and leave alone the podman that
// may run there.
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
type podman struct{ dir string }

func (p *podman) run(words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "podman", append([]string{"--root", p.dir + "/root", "--runroot", p.dir + "/run", "--tmpdir", p.dir + "/tmp"}, words...)...)
	cmd.Env = append(os.Environ(), "HOME="+p.dir, "CONTAINERS_CONF="+p.dir+"/containers.conf")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// newPodman skips where none works.
func newPodman(t *testing.T) *podman {
	t.Helper()
	for _, program := range []string{"podman", "runc", "conmon"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program, " is not installed")
		}
	}
	dir, err := os.MkdirTemp("", "play") // t.TempDir's is too long for podman's sockets
	if err != nil {
		t.Fatal(err)
	}
	p := &podman{dir}
	t.Cleanup(func() {
		p.run("pod", "rm", "-a", "-f", "-t", "0")
		p.run("rm", "-a", "-f", "-t", "0")
		p.run("rmi", "-a", "-f")
		exec.Command("umount", "-l", dir+"/root/overlay").Run()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(dir+"/containers.conf", []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := p.run("ps", "-a"); err != nil {
		t.Skipf("podman does not work: %v\n%s", err, out)
	}
	return p
}

// imports makes an image from scratch, of files by their paths.
func (p *podman) imports(t *testing.T, name string, files map[string]string, changes ...string) {
	t.Helper()
	path := filepath.Join(p.dir, "image.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := tar.NewWriter(file)
	for to, from := range files {
		content := read(t, from)
		archive.WriteHeader(&tar.Header{Name: strings.TrimPrefix(to, "/"), Mode: 0o755, Size: int64(len(content))})
		archive.Write(content)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	words := []string{"import", "-q"}
	for _, change := range changes {
		words = append(words, "--change", change)
	}
	if out, err := p.run(append(words, path, name)...); err != nil {
		t.Skipf("podman cannot import an image: %v\n%s", err, out)
	}
}

// TestPlay: podman runs the pods of the first manifests and stops them; the server
// gets the signal that it takes for a graceful stop, after the hold.
func TestPlay(t *testing.T) {
	p := newPodman(t)
	server := filepath.Join(filepath.Dir(lameduck), "server")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", server, "./server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// localhost/ keeps podman from looking for them elsewhere.
	p.imports(t, "localhost/lameduck:1", map[string]string{"/lameduck": lameduck}, "USER 65532:65532")
	p.imports(t, "localhost/nginx:1", map[string]string{"/docker-entrypoint.sh": server, "/usr/sbin/nginx": server}, "ENV PATH=/usr/sbin")
	changes := []string{"ENV PATH=/usr/local/bin:/usr/sbin", `ENTRYPOINT ["/lameduck"]`, `CMD ["docker-entrypoint.sh", "haproxy"]`}
	env, _ := image(t)
	for _, entry := range env {
		changes = append(changes, "ENV "+entry)
	}
	p.imports(t, "localhost/haproxy:1", map[string]string{"/lameduck": lameduck, "/usr/local/bin/docker-entrypoint.sh": server, "/usr/sbin/haproxy": server}, changes...)
	for name, want := range map[string]struct{ image, signal string }{
		"entrypoint.yaml": {"localhost/haproxy:1", "USR1"},
		"install.yaml":    {"localhost/nginx:1", "QUIT"},
	} {
		t.Run(name, func(t *testing.T) { p.plays(t, name, want.image, want.signal) })
	}
}

// plays a manifest with stand-ins for the images.
func (p *podman) plays(t *testing.T, name, image, signal string) {
	var pod *core.Pod
	var text []byte
	for _, object := range objects(t, read(t, name)) {
		if d, ok := object.(*apps.Deployment); ok {
			pod = podOf(d)
		} else if c, ok := object.(*core.ConfigMap); ok {
			part, _ := yaml.Marshal(c)
			text = append(append(text, part...), "---\n"...)
		}
	}
	pod.APIVersion, pod.Kind, pod.Name, pod.Spec.RestartPolicy = "v1", "Pod", "played", core.RestartPolicyNever
	for _, list := range [][]core.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			c.Image = map[bool]string{true: "localhost/lameduck:1", false: image}[c.Image == "lameduck:1"]
			c.ImagePullPolicy = core.PullNever
			c.Resources, c.Ports, c.ReadinessProbe = core.ResourceRequirements{}, nil, nil // there may be neither control groups nor a network
			for j, e := range c.Env {
				if e.Name == "LAMEDUCK_DELAY" {
					c.Env[j].Value = "1"
				}
			}
			for j, word := range c.Command {
				c.Command[j] = strings.Replace(word, "--delay=10", "--delay=1", 1)
			}
		}
	}
	part, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.dir, "pod.yaml")
	os.WriteFile(path, append(text, part...), 0o644)
	if out, err := p.run("kube", "play", "--network", "none", path); err != nil {
		t.Fatalf("podman kube play: %v\n%s", err, out)
	}
	defer p.run("kube", "down", path)
	container := "played-" + pod.Spec.Containers[0].Name
	logs := func() string { out, _ := p.run("logs", container); return out }
	for end := time.Now().Add(patience); !strings.Contains(logs(), "ready"); time.Sleep(50 * time.Millisecond) {
		if state, _ := p.run("inspect", "-f", "{{.State.Status}}", container); state == "exited" || time.Now().After(end) {
			t.Fatalf("it is not ready:\n%s", logs())
		}
	}
	if out, err := p.run("pod", "stop", "-t", "60", "played"); err != nil {
		t.Fatalf("podman pod stop: %v\n%s", err, out)
	}
	code, _ := p.run("inspect", "-f", "{{.State.ExitCode}}", container)
	if said := logs(); code != "0" || !strings.Contains(said, "got "+signal) || !strings.Contains(said, "TERM: held") {
		t.Errorf("it left with %s:\n%s", code, said)
	}
}
