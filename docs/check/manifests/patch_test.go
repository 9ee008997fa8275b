package manifests

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

const holdPatch = "patch/hold.yaml"

// deployment returns the Deployment of a manifest.
func deployment(t *testing.T, name string) *apps.Deployment {
	t.Helper()
	for _, object := range objects(t, read(t, name)) {
		if d, ok := object.(*apps.Deployment); ok {
			return d
		}
	}
	t.Fatalf("%s has no Deployment", name)
	return nil
}

// plain is the Deployment of hold.yaml as it was before lameduck.
func plain(t *testing.T) *apps.Deployment {
	t.Helper()
	d := deployment(t, "hold.yaml")
	spec := &d.Spec.Template.Spec
	c := &spec.Containers[0]
	spec.InitContainers, spec.TerminationGracePeriodSeconds = nil, nil
	spec.Volumes, c.VolumeMounts = spec.Volumes[1:], c.VolumeMounts[1:] // tmp stays
	c.Lifecycle = nil
	return d
}

// patched returns d with patch/hold.yaml merged as the API server merges the patch.
func patched(t *testing.T, d *apps.Deployment) *apps.Deployment {
	t.Helper()
	patch, err := yaml.YAMLToJSON(read(t, holdPatch))
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, apps.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	got := new(apps.Deployment)
	if err := yaml.UnmarshalStrict(after, got); err != nil {
		t.Fatal(err)
	}
	return got
}

// essential is hold.yaml without what only a hardened Deployment needs of lameduck.
func essential(t *testing.T) *apps.Deployment {
	t.Helper()
	d := deployment(t, "hold.yaml")
	spec := &d.Spec.Template.Spec
	spec.InitContainers[0].Resources = core.ResourceRequirements{}
	spec.InitContainers[0].SecurityContext = nil
	spec.Volumes[0].EmptyDir.SizeLimit = nil
	return d
}

// TestPatch: the patch makes hold.yaml of a plain Deployment, whatever preStop sleep or
// postStart hook the container had, and a second time changes nothing.
func TestPatch(t *testing.T) {
	sleeping := &core.Lifecycle{PreStop: &core.LifecycleHandler{Sleep: &core.SleepAction{Seconds: 15}}}
	started := sleep("true")
	started.PostStart, started.PreStop = started.PreStop, nil
	for name, lifecycle := range map[string]*core.Lifecycle{
		"no hook":        nil,
		"preStop sleep":  sleeping,
		"sleep command":  sleep("sleep", "15"),
		"postStart hook": started,
	} {
		t.Run(name, func(t *testing.T) {
			d, want := plain(t), essential(t)
			d.Spec.Template.Spec.Containers[0].Lifecycle = lifecycle
			if lifecycle != nil {
				want.Spec.Template.Spec.Containers[0].Lifecycle.PostStart = lifecycle.PostStart
			}
			got := patched(t, d)
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("the patch makes\n%+v\nof the Deployment; hold.yaml is\n%+v", got.Spec.Template.Spec, want.Spec.Template.Spec)
			}
			stops(t, podOf(got))
			if again := patched(t, got); !equality.Semantic.DeepEqual(again, got) {
				t.Error("the patch changes its own result")
			}
		})
	}
}

// TestPatchLines: the patch is short enough for a first screen.
func TestPatchLines(t *testing.T) {
	lines := 0
	for line := range strings.Lines(string(read(t, holdPatch))) {
		if !strings.HasPrefix(line, "#") {
			lines++
		}
	}
	if lines > 15 {
		t.Errorf("%s has %d lines", holdPatch, lines)
	}
}

// TestKubectlPatch: kubectl takes the patch, and makes of a Deployment what the API
// server's code makes.
func TestKubectlPatch(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not installed")
	}
	text, err := yaml.Marshal(plain(t))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("kubectl", "patch", "--local", "-f", "-", "--patch-file", examples+holdPatch, "-o", "yaml")
	cmd.Stdin = strings.NewReader(string(text))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl: %v", err)
	}
	got := new(apps.Deployment)
	if err := yaml.Unmarshal(out, got); err != nil {
		t.Fatal(err)
	}
	if want := essential(t); !equality.Semantic.DeepEqual(got.Spec, want.Spec) {
		t.Errorf("kubectl makes\n%+v\nhold.yaml is\n%+v", got.Spec, want.Spec)
	}
}
