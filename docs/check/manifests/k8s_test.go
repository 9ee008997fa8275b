// Package k8s tests the manifests beside it. It is a module of its own, so that what
// it takes from Kubernetes never reaches the product.
package k8s

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/lameduck-init/lameduck/testdata/k8s/manifest"
)

const (
	root    = "../.."
	program = "/opt/lameduck/lameduck" // where the manifests have it
)

// lameduck is the binary, built as it is shipped.
var lameduck string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "k8s")
	if err != nil {
		panic(err)
	}
	lameduck = filepath.Join(dir, "lameduck")
	make := exec.Command("make", "-s", "-C", root, "build", "OUT="+lameduck)
	make.Stderr = os.Stderr
	if err := make.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot build lameduck:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// objects reads a manifest.
func objects(t *testing.T, text []byte) []runtime.Object {
	t.Helper()
	list, err := manifest.Objects(text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// manifests are those of pods, by their names.
func manifests(t *testing.T) map[string][]byte {
	t.Helper()
	texts := map[string][]byte{}
	paths, _ := filepath.Glob("*.yaml")
	for _, path := range paths {
		texts[path] = read(t, path)
	}
	if len(texts) < 5 {
		t.Fatalf("only %d manifests", len(texts))
	}
	built, err := manifest.Build("fleet/example")
	if err != nil {
		t.Fatal(err)
	}
	texts["fleet/example"] = built
	return texts
}

// podOf is the pod that an object would make, if it makes any.
func podOf(object runtime.Object) *core.Pod {
	d, ok := object.(*apps.Deployment)
	if !ok {
		return nil
	}
	return &core.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
}

// TestManifests: each has pods, that may run where little may.
func TestManifests(t *testing.T) {
	for name, text := range manifests(t) {
		t.Run(name, func(t *testing.T) {
			n := 0
			for _, object := range objects(t, text) {
				if pod := podOf(object); pod != nil {
					n++
					for key, value := range object.(*apps.Deployment).Spec.Selector.MatchLabels {
						if pod.Labels[key] != value {
							t.Errorf("the selector %s=%s does not select its pods", key, value)
						}
					}
					hardened(t, pod)
					stops(t, pod)
				}
			}
			if n != 1 {
				t.Errorf("%d Deployments", n)
			}
		})
	}
}

// TestWhen: each says when to use it.
func TestWhen(t *testing.T) {
	paths, _ := filepath.Glob("*.yaml")
	for _, path := range append(paths, "fleet/policy.yaml", "fleet/kyverno.yaml", "fleet/component/kustomization.yaml") {
		if text := string(read(t, path)); !strings.HasPrefix(text, "# When ") {
			t.Errorf("%s does not say when to use it", path)
		}
	}
}

// hardened wants the restricted level of Pod Security, its newest version, and what
// that does not ask for: a root that is read-only, requests and limits.
func hardened(t *testing.T, pod *core.Pod) {
	t.Helper()
	judge, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, result := range judge.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			t.Errorf("not restricted: %s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s may write to its root file system", c.Name)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s lacks requests or limits: %v", c.Name, c.Resources)
		}
		for _, mount := range c.VolumeMounts {
			if !slices.ContainsFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == mount.Name }) {
				t.Errorf("%s mounts %s, which is no volume", c.Name, mount.Name)
			}
		}
	}
}

// stops wants the pod's lameducks to take their words, to say nothing against them,
// and to fit into the grace period. At least one of them holds.
func stops(t *testing.T, pod *core.Pod) {
	t.Helper()
	grace := *pod.Spec.TerminationGracePeriodSeconds
	for _, c := range pod.Spec.InitContainers {
		if len(c.Command) != 3 || c.Command[0] != "/lameduck" || c.Command[1] != "install" {
			t.Fatalf("%s runs %q", c.Name, c.Command)
		}
		if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].MountPath != c.Command[2] || c.Command[2] == "/lameduck" {
			t.Errorf("%s does not install to its volume", c.Name)
		}
	}
	holding := 0
	for _, c := range pod.Spec.Containers {
		words := slices.Concat(c.Command, c.Args)
		env := []string{"KUBERNETES_SERVICE_HOST=10.0.0.1", "LAMEDUCK_SERVICE_HOST=10.0.0.2", "LAMEDUCK_PORT=tcp://10.0.0.2:80"}
		if len(words) == 0 && strings.Contains(c.Image, "lameduck") {
			var ours []string
			ours, words = image(t)
			env = append(env, ours...)
		}
		for _, e := range c.Env {
			env = append(env, e.Name+"="+e.Value)
			if e.Name == "LAMEDUCK_GRACE_PERIOD" && e.Value != strconv.FormatInt(grace, 10) {
				t.Errorf("%s is told of %s s of grace, and gets %d", c.Name, e.Value, grace)
			}
		}
		hook := []string(nil)
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Exec != nil {
			hook = c.Lifecycle.PreStop.Exec.Command
		}
		switch {
		case len(words) > 0 && (words[0] == program || words[0] == "/lameduck"):
			explain(t, c.Name, grace, env, words[1:])
		case len(hook) > 1 && hook[0] == program && hook[1] == "hold":
			if !slices.Contains(hook, fmt.Sprintf("--grace-period=%d", grace)) {
				t.Errorf("%s: %q is not told of %d s of grace", c.Name, hook, grace)
			}
			help := exec.Command(lameduck, append(slices.Clone(hook[1:]), "--help")...)
			if out, err := help.CombinedOutput(); err != nil {
				t.Errorf("%q: %v\n%s", hook, err, out)
			}
			explain(t, c.Name, grace, env, slices.Concat([]string{"--until=quiet"}, hook[2:], []string{"--", "server"}))
		default:
			continue
		}
		holding++
		mounted := func(m core.VolumeMount) bool { return m.MountPath == filepath.Dir(program) && m.ReadOnly }
		if words = append(words, hook...); slices.Contains(words, program) && !slices.ContainsFunc(c.VolumeMounts, mounted) {
			t.Errorf("%s does not mount lameduck, or may write to it", c.Name)
		}
	}
	if holding == 0 {
		t.Error("nobody holds")
	}
}

// explain asks lameduck what it would do.
func explain(t *testing.T, name string, grace int64, env, words []string) {
	t.Helper()
	cmd := exec.Command(lameduck, append([]string{"--explain"}, words...)...)
	cmd.Env = env
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	if err := cmd.Run(); err != nil || says.Len() > 0 {
		t.Errorf("%s: %q: %v\n%s", name, words, err, says.String())
		return
	}
	needs := regexp.MustCompile(`terminationGracePeriodSeconds of (\d+) or more`).FindStringSubmatch(out.String())
	if needs == nil || !strings.Contains(out.String(), "keeps serving") {
		t.Errorf("%s does not hold:\n%s", name, out.String())
		return
	}
	if n, _ := strconv.ParseInt(needs[1], 10, 64); n > grace {
		t.Errorf("%s needs %d s of grace, and has %d", name, n, grace)
	}
}

// image is what Dockerfile.example makes of HAProxy's: the environment, and what
// runs.
func image(t *testing.T) (env, words []string) {
	t.Helper()
	ours, err := manifest.Dockerfile(root + "/Dockerfile.example")
	if err != nil {
		t.Fatal(err)
	}
	return ours.Env, append(ours.Entrypoint, ours.Cmd...)
}

// TestInstall: what the init container runs.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(context.Background(), lameduck, "install", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(dir+"/lameduck", "--version").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
