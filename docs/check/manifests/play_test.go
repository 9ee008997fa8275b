package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lameduck-init/lameduck/docs/check/internal/podman"
)

// patience bounds the start of a pod on a busy machine.
const patience = 2 * time.Minute

// TestPlay: podman runs the pods of two manifests and stops the pods; after the hold the
// server gets the signal for a graceful stop.
func TestPlay(t *testing.T) {
	p := player{podman.New(t)}
	server := filepath.Join(filepath.Dir(lameduck), "server")
	build := exec.Command("go", "build", "-C", root+"/cmd/lab", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", server, "./internal/cluster/server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.imports(t, podman.Release, map[string]string{"/lameduck": lameduck}, "USER 65532:65532")
	p.imports(t, "nginx:1", map[string]string{"/docker-entrypoint.sh": server, "/usr/sbin/nginx": server}, "ENV PATH=/usr/sbin")
	changes := []string{"ENV PATH=/usr/local/bin:/usr/sbin", `ENTRYPOINT ["/lameduck"]`, `CMD ["docker-entrypoint.sh", "haproxy"]`}
	env, _ := image(t)
	for _, entry := range env {
		changes = append(changes, "ENV "+entry)
	}
	p.imports(t, "haproxy:1", map[string]string{"/lameduck": lameduck, "/usr/local/bin/docker-entrypoint.sh": server, "/usr/sbin/haproxy": server}, changes...)
	for name, want := range map[string]struct{ image, signal string }{
		"entrypoint.yaml": {"haproxy:1", "USR1"},
		"install.yaml":    {"nginx:1", "QUIT"},
	} {
		t.Run(name, func(t *testing.T) { p.plays(t, name, want.image, want.signal) })
	}
}

// player is a podman that plays manifests.
type player struct{ *podman.Podman }

// imports makes an image from scratch, of files by path.
func (p player) imports(t *testing.T, name string, files map[string]string, changes ...string) {
	t.Helper()
	p.Import(t, name, func(i *podman.Image) {
		for path, from := range files {
			i.Copy(path, from)
		}
	}, changes...)
}

// plays runs and stops a manifest with stand-ins for the images.
func (p player) plays(t *testing.T, name, image, signal string) {
	path := filepath.Join(p.Dir, "pod.yaml")
	pod, text := playable(t, name, image)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := p.Run("kube", "play", "--network", "none", path); err != nil {
		t.Fatalf("podman kube play: %v\n%s", err, out)
	}
	defer p.Run("kube", "down", path)
	container := "played-" + pod.Spec.Containers[0].Name
	logs := func() string { out, _ := p.Run("logs", container); return out }
	for end := time.Now().Add(patience); !strings.Contains(logs(), "ready"); time.Sleep(50 * time.Millisecond) {
		if state, _ := p.Run("inspect", "-f", "{{.State.Status}}", container); state == "exited" || time.Now().After(end) {
			t.Fatalf("the server is not ready:\n%s", logs())
		}
	}
	if out, err := p.Run("pod", "stop", "-t", "60", "played"); err != nil {
		t.Fatalf("podman pod stop: %v\n%s", err, out)
	}
	code, _ := p.Run("inspect", "-f", "{{.State.ExitCode}}", container)
	if text := logs(); code != "0" || !strings.Contains(text, "got "+signal) || !regexp.MustCompile(`TERM: .*\bheld `).MatchString(text) {
		t.Errorf("exit code %s:\n%s", code, text)
	}
}

// playable returns the pod of a manifest, changed for podman, and the YAML of the pod and
// the manifest's ConfigMaps.
func playable(t *testing.T, name, image string) (pod *core.Pod, text []byte) {
	t.Helper()
	for _, object := range objects(t, read(t, name)) {
		if d, ok := object.(*apps.Deployment); ok {
			pod = podOf(d)
		} else if c, ok := object.(*core.ConfigMap); ok {
			part, _ := yaml.Marshal(c)
			text = append(append(text, part...), "---\n"...)
		}
	}
	pod.TypeMeta = meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Name, pod.Spec.RestartPolicy = "played", core.RestartPolicyNever
	for _, list := range [][]core.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			localise(&list[i], image)
		}
	}
	part, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return pod, append(text, part...)
}

// localise gives a container an image of the store, and takes away what needs control groups
// or a network: the machine may have neither.
func localise(c *core.Container, image string) {
	if c.Image == podman.Release {
		image = c.Image
	}
	c.Image, c.ImagePullPolicy = podman.Stored(image), core.PullNever
	c.Resources, c.Ports = core.ResourceRequirements{}, nil
	c.ReadinessProbe = nil
}
