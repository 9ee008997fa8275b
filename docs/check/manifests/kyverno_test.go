package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestKyvernoEngine: Kyverno's own engine changes a pod as the API server does.
func TestKyvernoEngine(t *testing.T) {
	if _, err := exec.LookPath("kyverno"); err != nil {
		t.Skip("kyverno, its command line (1.17 or newer), is not installed")
	}
	before := web(t)
	before.TypeMeta = meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	before.Name, before.Namespace = "web", "default"
	for name, change := range map[string]func(*core.Pod){
		"as it is":   func(*core.Pod) {},
		"annotation": func(p *core.Pod) { p.Annotations = map[string]string{"lameduck/delay": "12"} },
		"no sleep":   func(p *core.Pod) { p.Spec.Containers[0].Lifecycle = nil },
		"no label":   func(p *core.Pod) { delete(p.Labels, "lameduck") },
	} {
		t.Run(name, func(t *testing.T) {
			pod := before.DeepCopy()
			change(pod)
			text, err := yaml.Marshal(pod)
			if err != nil {
				t.Fatal(err)
			}
			in, result := filepath.Join(t.TempDir(), "pod.yaml"), filepath.Join(t.TempDir(), "out.yaml")
			if err := os.WriteFile(in, text, 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("kyverno", "apply", examples+"fleet/kyverno.yaml", "--resource", in, "--output", result).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got, want := new(core.Pod), pod
			changed, err := os.ReadFile(result)
			if err == nil {
				err = yaml.UnmarshalStrict(changed, got)
			}
			if err != nil {
				t.Fatal(err)
			}
			if pod.Labels["lameduck"] == "hold" { // the policies select this label
				want = admit(t, &thePolicy(t).Spec, pod)
			}
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("the pod is\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}
