package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"
)

const examples = "../../examples/kubernetes/"

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(examples + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// kubectl runs kubectl, or skips the test where kubectl is not installed.
func kubectl(t *testing.T, stdin []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("kubectl", args...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), os.Stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("kubectl %q: %v", args, err)
	}
	return out
}

// pod returns the pod of the only Deployment of a manifest.
func pod(t *testing.T, text []byte) *core.PodSpec {
	t.Helper()
	list, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	var found []*core.PodSpec
	for _, object := range list {
		if d, ok := object.(*apps.Deployment); ok {
			found = append(found, &d.Spec.Template.Spec)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d Deployments", len(found))
	}
	return found[0]
}

// TestManifests: each manifest has a Deployment whose pods the restricted level of Pod Security
// allows, with a read-only root file system, requests and limits beyond. The overlay with the
// component is as good.
func TestManifests(t *testing.T) {
	pods := map[string]*core.PodSpec{"fleet/example": pod(t, kubectl(t, nil, "kustomize", examples+"fleet/example"))}
	paths, _ := filepath.Glob(examples + "*.yaml")
	for _, path := range paths {
		pods[filepath.Base(path)] = pod(t, read(t, filepath.Base(path)))
	}
	if len(pods) < 6 {
		t.Fatalf("only %d manifests", len(pods))
	}
	const (
		ofPod       = `"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}`
		ofContainer = `{"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}`
	)
	for name, spec := range pods {
		if got, _ := json.Marshal(spec.SecurityContext); !strings.Contains(string(got), ofPod) {
			t.Errorf("%s: the pod's security context is %s", name, got)
		}
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			if got, _ := json.Marshal(c.SecurityContext); string(got) != ofContainer {
				t.Errorf("%s: the security context of %s is %s", name, c.Name, got)
			}
			for _, list := range []core.ResourceList{c.Resources.Requests, c.Resources.Limits} {
				if list.Cpu().IsZero() || list.Memory().IsZero() {
					t.Errorf("%s: %s lacks requests or limits: %v", name, c.Name, c.Resources)
				}
			}
			for _, m := range c.VolumeMounts {
				if !slices.ContainsFunc(spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name }) {
					t.Errorf("%s: %s mounts %s, which is not a volume of the pod", name, c.Name, m.Name)
				}
			}
		}
	}
}

// patched returns the pod of a manifest's Deployment with a patch.
func patched(t *testing.T, manifest []byte, patch string) *core.PodSpec {
	t.Helper()
	deployment, _, _ := bytes.Cut(manifest, []byte("\n---\n")) // without the Service
	return pod(t, kubectl(t, deployment, "patch", "--local", "-f", "-", "-o", "yaml", "--patch-file", examples+"patch/"+patch))
}

func wantSame(t *testing.T, got, want any) {
	t.Helper()
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// TestHoldPatch: the patch makes hold.yaml of a Deployment without lameduck, whether or not its
// container had a preStop sleep; only what a hardened pod needs besides is missing.
func TestHoldPatch(t *testing.T) {
	want := pod(t, read(t, "hold.yaml"))
	want.InitContainers[0].Resources, want.InitContainers[0].SecurityContext = core.ResourceRequirements{}, nil
	want.Volumes[0].EmptyDir.SizeLimit = nil
	before := bytes.Replace(read(t, "fleet/example/web.yaml"), []byte("name: app\n"), []byte("name: nginx\n"), 1)
	hook := []byte("        lifecycle:\n          preStop:\n            sleep: {seconds: 15}\n")
	if !bytes.Contains(before, hook) {
		t.Fatal("web.yaml has no sleep")
	}
	wantSame(t, patched(t, before, "hold.yaml"), want)
	wantSame(t, patched(t, bytes.Replace(before, hook, nil, 1), "hold.yaml"), want)
}

// TestSeccompPatch: the patch changes the pod's profile to the file of the examples, and nothing else.
func TestSeccompPatch(t *testing.T) {
	want, file := pod(t, read(t, "install.yaml")), "lameduck.json"
	read(t, "seccomp/"+file)
	want.SecurityContext.SeccompProfile =
		&core.SeccompProfile{Type: core.SeccompProfileTypeLocalhost, LocalhostProfile: &file}
	wantSame(t, patched(t, read(t, "install.yaml"), "seccomp.yaml"), want)
}

// TestStopSignalPatch: the patch adds the signal, and keeps the hook.
func TestStopSignalPatch(t *testing.T) {
	want, signal := pod(t, read(t, "hold.yaml")), core.SIGQUIT
	want.OS = &core.PodOS{Name: core.Linux}
	want.Containers[0].Lifecycle.StopSignal = &signal
	wantSame(t, patched(t, read(t, "hold.yaml"), "stop-signal.yaml"), want)
}

// TestWatch: the patch adds a sidecar, first, which the restricted level allows by itself. So does
// the component with the label watch.
func TestWatch(t *testing.T) {
	want, got := pod(t, read(t, "hold.yaml")), patched(t, read(t, "hold.yaml"), "watch.yaml")
	sidecar := got.InitContainers[0]
	const context = `{"capabilities":{"drop":["ALL"]},"runAsUser":65532,"runAsNonRoot":true,` +
		`"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false,"seccompProfile":{"type":"RuntimeDefault"}}`
	if got, _ := json.Marshal(sidecar.SecurityContext); string(got) != context {
		t.Errorf("the security context is %s", got)
	}
	wantSame(t, sidecar.Command, []string{"/lameduck", "watch", "--only-stops", "--json", "--grace-period=30"})
	wantSame(t, *sidecar.RestartPolicy, core.ContainerRestartPolicyAlways)
	want.InitContainers = slices.Insert(want.InitContainers, 0, sidecar)
	wantSame(t, got, want)

	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(examples+"fleet")); err != nil {
		t.Fatal(err)
	}
	text := bytes.ReplaceAll(read(t, "fleet/example/web.yaml"), []byte("lameduck: hold"), []byte("lameduck: watch"))
	if err := os.WriteFile(dir+"/example/web.yaml", text, 0o644); err != nil {
		t.Fatal(err)
	}
	want = pod(t, text)
	want.InitContainers = []core.Container{sidecar}
	wantSame(t, pod(t, kubectl(t, nil, "kustomize", dir+"/example")), want)
}

// TestPolicies: the API server's policies decode, and the command on top of one makes Kyverno's.
func TestPolicies(t *testing.T) {
	for _, name := range []string{"policy.yaml", "watch.yaml"} {
		if _, err := Decode(read(t, "fleet/"+name)); err != nil {
			t.Error(err)
		}
	}
	command := regexp.MustCompile(`(?m)^#   (.*)`).FindAllStringSubmatch(string(read(t, "fleet/policy.yaml")), -1)
	script := ""
	for _, line := range command {
		script += line[1] + "\n"
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = examples + "fleet"
	text, err := cmd.Output()
	var got map[string]any
	if err := errors.Join(err, yaml.UnmarshalStrict(text, &got)); err != nil {
		t.Fatal(err)
	}
	spec, _ := got["spec"].(map[string]any)
	fields := slices.Sorted(maps.Keys(spec))
	wantSame(t, []any{got["apiVersion"], got["kind"]}, []any{"policies.kyverno.io/v1", "MutatingPolicy"})
	wantSame(t, fields, []string{"autogen", "evaluation", "failurePolicy", "matchConditions", "matchConstraints", "mutations", "variables"})
}
