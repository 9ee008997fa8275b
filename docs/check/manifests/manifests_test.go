package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
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

// deployment returns the only Deployment of a manifest.
func deployment(t *testing.T, text []byte) *apps.Deployment {
	t.Helper()
	list, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	var found []*apps.Deployment
	for _, object := range list {
		if d, ok := object.(*apps.Deployment); ok {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d Deployments", len(found))
	}
	return found[0]
}

// TestManifests: each manifest has a Deployment whose pods the restricted level of Pod
// Security allows.
func TestManifests(t *testing.T) {
	paths, _ := filepath.Glob(examples + "*.yaml")
	if len(paths) < 5 {
		t.Fatalf("only %d manifests", len(paths))
	}
	for _, path := range paths {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) { restricted(t, deployment(t, read(t, name))) })
	}
}

// TestFleet: the overlay with the component is as good as the manifests.
func TestFleet(t *testing.T) {
	restricted(t, deployment(t, kubectl(t, nil, "kustomize", examples+"fleet/example")))
}

// restricted checks the pods of a Deployment by the restricted level and beyond: a
// read-only root file system, requests and limits.
func restricted(t *testing.T, d *apps.Deployment) {
	t.Helper()
	spec := d.Spec.Template.Spec
	const (
		pod       = `"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}`
		container = `{"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}`
	)
	if got, _ := json.Marshal(spec.SecurityContext); !strings.Contains(string(got), pod) {
		t.Errorf("the pod's security context is %s", got)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if got, _ := json.Marshal(c.SecurityContext); string(got) != container {
			t.Errorf("the security context of %s is %s", c.Name, got)
		}
		for _, list := range []core.ResourceList{c.Resources.Requests, c.Resources.Limits} {
			if list.Cpu().IsZero() || list.Memory().IsZero() {
				t.Errorf("%s lacks requests or limits: %v", c.Name, c.Resources)
			}
		}
		for _, m := range c.VolumeMounts {
			if !slices.ContainsFunc(spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("%s mounts %s, which is not a volume of the pod", c.Name, m.Name)
			}
		}
	}
}

// TestPatch: the patch makes hold.yaml of a Deployment without lameduck, whether or not its
// container had a preStop sleep; only what a hardened pod needs besides is missing.
func TestPatch(t *testing.T) {
	sleep := &core.LifecycleHandler{Sleep: &core.SleepAction{Seconds: 15}}
	for _, lifecycle := range []*core.Lifecycle{nil, {PreStop: sleep}} {
		want := deployment(t, read(t, "hold.yaml"))
		before := want.DeepCopy()
		init := &want.Spec.Template.Spec.InitContainers[0]
		init.Resources, init.SecurityContext = core.ResourceRequirements{}, nil
		want.Spec.Template.Spec.Volumes[0].EmptyDir.SizeLimit = nil

		spec := &before.Spec.Template.Spec
		spec.InitContainers, spec.TerminationGracePeriodSeconds = nil, nil
		spec.Volumes = spec.Volumes[1:] // tmp stays
		c := &spec.Containers[0]
		c.VolumeMounts, c.Lifecycle = c.VolumeMounts[1:], lifecycle
		text, err := yaml.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		got := deployment(t, kubectl(t, text, "patch", "--local", "-f", "-", "-o", "yaml",
			"--patch-file", examples+"patch/hold.yaml"))
		if !equality.Semantic.DeepEqual(got.Spec, want.Spec) {
			t.Errorf("kubectl makes\n%+v\nof\n%+v, want\n%+v", got.Spec, before.Spec, want.Spec)
		}
	}
}

// TestWatchPatch: the patch adds the sidecar, first, which the restricted level allows by itself.
func TestWatchPatch(t *testing.T) {
	text, _, _ := bytes.Cut(read(t, "hold.yaml"), []byte("\n---\n")) // without the Service
	want := deployment(t, text)
	got := deployment(t, kubectl(t, text, "patch", "--local", "-f", "-", "-o", "yaml",
		"--patch-file", examples+"patch/watch.yaml"))
	wantSidecar(t, got, want)
}

// TestSeccompPatch: the patch changes the pod's profile to the file of the examples, and nothing else.
func TestSeccompPatch(t *testing.T) {
	text, _, _ := bytes.Cut(read(t, "install.yaml"), []byte("\n---\n")) // without the Service
	got := deployment(t, kubectl(t, text, "patch", "--local", "-f", "-", "-o", "yaml",
		"--patch-file", examples+"patch/seccomp.yaml"))
	want, file := deployment(t, text), "lameduck.json"
	read(t, "seccomp/"+file)
	want.Spec.Template.Spec.SecurityContext.SeccompProfile =
		&core.SeccompProfile{Type: core.SeccompProfileTypeLocalhost, LocalhostProfile: &file}
	if !equality.Semantic.DeepEqual(got.Spec, want.Spec) {
		t.Errorf("got\n%+v\nwant\n%+v", got.Spec, want.Spec)
	}
}

// TestStopSignalPatch: the patch adds the signal, and keeps the hook.
func TestStopSignalPatch(t *testing.T) {
	text, _, _ := bytes.Cut(read(t, "hold.yaml"), []byte("\n---\n")) // without the Service
	got := deployment(t, kubectl(t, text, "patch", "--local", "-f", "-", "-o", "yaml",
		"--patch-file", examples+"patch/stop-signal.yaml"))
	want, signal := deployment(t, text), core.SIGQUIT
	want.Spec.Template.Spec.OS = &core.PodOS{Name: core.Linux}
	want.Spec.Template.Spec.Containers[0].Lifecycle.StopSignal = &signal
	if !equality.Semantic.DeepEqual(got.Spec, want.Spec) {
		t.Errorf("got\n%+v\nwant\n%+v", got.Spec, want.Spec)
	}
}

// TestFleetWatch: with the label watch the component adds the sidecar, and leaves the rest.
func TestFleetWatch(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(examples+"fleet")); err != nil {
		t.Fatal(err)
	}
	text := bytes.ReplaceAll(read(t, "fleet/example/web.yaml"), []byte("lameduck: hold"), []byte("lameduck: watch"))
	if err := os.WriteFile(dir+"/example/web.yaml", text, 0o644); err != nil {
		t.Fatal(err)
	}
	wantSidecar(t, deployment(t, kubectl(t, nil, "kustomize", dir+"/example")), deployment(t, text))
}

// wantSidecar wants got to be want with lameduck watch as its first init container.
func wantSidecar(t *testing.T, got, want *apps.Deployment) {
	t.Helper()
	spec := &got.Spec.Template.Spec
	if len(spec.InitContainers) == 0 {
		t.Fatal("no sidecar")
	}
	sidecar := spec.InitContainers[0]
	spec.InitContainers = spec.InitContainers[1:]
	if !equality.Semantic.DeepEqual(got.Spec, want.Spec) {
		t.Errorf("got\n%+v\nwant\n%+v and the sidecar", got.Spec, want.Spec)
	}
	const context = `{"capabilities":{"drop":["ALL"]},"runAsUser":65532,"runAsNonRoot":true,` +
		`"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false,"seccompProfile":{"type":"RuntimeDefault"}}`
	if got, _ := json.Marshal(sidecar.SecurityContext); string(got) != context {
		t.Errorf("the security context is %s", got)
	}
	always := sidecar.RestartPolicy != nil && *sidecar.RestartPolicy == core.ContainerRestartPolicyAlways
	if !always || !slices.Equal(sidecar.Command, []string{"/lameduck", "watch", "--only-stops", "--json", "--grace-period=30"}) {
		t.Errorf("the sidecar is %+v", sidecar)
	}
}

// TestPolicies: the API server's policies decode, and from failurePolicy on Kyverno's is the
// same.
func TestPolicies(t *testing.T) {
	ours, theirs := read(t, "fleet/policy.yaml"), read(t, "fleet/kyverno.yaml")
	for _, text := range [][]byte{ours, read(t, "fleet/watch.yaml")} {
		if _, err := Decode(text); err != nil {
			t.Fatal(err)
		}
	}
	common := regexp.MustCompile(`(?s)\n  failurePolicy: .*\n  mutations:.*`)
	policy, _, _ := strings.Cut(string(ours), "---\n")
	if want := common.FindString(policy); want == "" || common.FindString(string(theirs)) != want {
		t.Error("Kyverno's policy differs from the API server's")
	}
}
