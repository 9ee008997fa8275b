package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

const examples = "../../examples/kubernetes/"

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func read(name string) []byte { return must(os.ReadFile(examples + name)) }

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
	var found []*core.PodSpec
	for _, object := range must(Decode(text)) {
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
		pods[filepath.Base(path)] = pod(t, read(filepath.Base(path)))
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
			if c.Name == "lameduck-watch" { // which the restricted level allows by itself
				c.SecurityContext.RunAsNonRoot, c.SecurityContext.RunAsUser, c.SecurityContext.SeccompProfile = nil, nil, nil
			}
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
	want := pod(t, read("hold.yaml"))
	want.InitContainers[0].Resources, want.InitContainers[0].SecurityContext = core.ResourceRequirements{}, nil
	want.Volumes[0].EmptyDir.SizeLimit = nil
	before := bytes.Replace(read("fleet/example/web.yaml"), []byte("Seconds: 60\n"), []byte("Seconds: 30\n"), 1)
	hook := []byte("        lifecycle:\n          preStop:\n            sleep: {seconds: 15}\n")
	if !bytes.Contains(before, hook) {
		t.Fatal("web.yaml has no sleep")
	}
	wantSame(t, patched(t, before, "hold.yaml"), want)
	wantSame(t, patched(t, bytes.Replace(before, hook, nil, 1), "hold.yaml"), want)
}

// TestPatches: what each of the others adds to a Deployment that holds, and nothing else.
func TestPatches(t *testing.T) {
	sidecar := pod(t, read("fleet/component/watch.yaml")).InitContainers[0]
	profile, signal := "lameduck.json", core.SIGQUIT
	read("seccomp/" + profile)
	for patch, change := range map[string]func(*core.PodSpec){
		"seccomp.yaml": func(spec *core.PodSpec) {
			local := core.SeccompProfile{Type: core.SeccompProfileTypeLocalhost, LocalhostProfile: &profile}
			spec.SecurityContext.SeccompProfile = &local
		},
		"stop-signal.yaml": func(spec *core.PodSpec) {
			spec.OS = &core.PodOS{Name: core.Linux}
			spec.Containers[0].Lifecycle.StopSignal = &signal
		},
		"watch.yaml": func(spec *core.PodSpec) { spec.InitContainers = slices.Insert(spec.InitContainers, 0, sidecar) },
	} {
		want := pod(t, read("hold.yaml"))
		change(want)
		wantSame(t, patched(t, read("hold.yaml"), patch), want)
	}
}

// overlay returns the pod of the example's Deployment with a change, and what the overlay makes of it.
func overlay(t *testing.T, old, new string) (before, after *core.PodSpec) {
	t.Helper()
	dir := t.TempDir()
	text := bytes.ReplaceAll(read("fleet/example/web.yaml"), []byte(old), []byte(new))
	err := errors.Join(os.CopyFS(dir, os.DirFS(examples+"fleet")), os.WriteFile(dir+"/example/web.yaml", text, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return pod(t, text), pod(t, kubectl(t, nil, "kustomize", dir+"/example"))
}

// TestFleetHold: the component takes a grace period as it is, and its stops go on being measured.
func TestFleetHold(t *testing.T) {
	before, after := overlay(t, "Seconds: 60", "Seconds: 120")
	wantSame(t, *after.TerminationGracePeriodSeconds, int64(120))
	wantSame(t, after.Containers[0].Image, before.Containers[0].Image)
	wantSame(t, after.Containers[0].Lifecycle.PreStop.Sleep, (*core.SleepAction)(nil))
	wantSame(t, len(after.InitContainers)+len(after.Containers), 3)
	command := strings.Join(after.InitContainers[0].Command, " ")
	wantSame(t, command, "/lameduck watch --only-stops --json --grace-period=60")
}

// TestFleetWatch: with the label watch the component adds a sidecar, which the restricted level
// allows by itself, and leaves the rest.
func TestFleetWatch(t *testing.T) {
	want, got := overlay(t, "lameduck: hold", "lameduck: watch")
	want.InitContainers = got.InitContainers[:1]
	wantSame(t, got, want)
	const sidecar = `{"name":"lameduck-watch","image":"ghcr.io/lameduck-init/lameduck:1",` +
		`"command":["/lameduck","watch","--only-stops","--json","--grace-period=30"],` +
		`"resources":{"limits":{"cpu":"100m","memory":"32Mi"},"requests":{"cpu":"10m","memory":"16Mi"}},"restartPolicy":"Always",` +
		`"securityContext":{"capabilities":{"drop":["ALL"]},"runAsUser":65532,"runAsNonRoot":true,` +
		`"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false,"seccompProfile":{"type":"RuntimeDefault"}}}`
	if got, _ := json.Marshal(got.InitContainers[0]); string(got) != sidecar {
		t.Errorf("the sidecar is %s", got)
	}
}

// TestKyverno: the command on top of the API server's policy makes Kyverno's.
func TestKyverno(t *testing.T) {
	script := ""
	for line := range strings.Lines(string(read("fleet/policy.yaml"))) {
		if command, found := strings.CutPrefix(line, "#   "); found {
			script += command
		}
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = examples + "fleet"
	text, err := cmd.Output()
	head, _, _ := strings.Cut(string(text), "\n  failurePolicy: ")
	head = head[strings.LastIndex(head, "\napiVersion"):]
	const want = `
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: lameduck-hold}
spec:
  autogen: {podControllers: {controllers: []}} # the pods alone
  evaluation: {background: {enabled: false}} # at creation`
	if err != nil || head != want || strings.Contains(string(text), "\n---") {
		t.Errorf("%v, and Kyverno's policy is\n%s", err, text)
	}
}
