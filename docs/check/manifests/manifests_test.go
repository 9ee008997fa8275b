// Package manifests checks docs/examples/kubernetes: each manifest decodes, passes Pod
// Security, holds, and, as far as podman can play the pod, stops as promised.
package manifests

import (
	"bytes"
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

	"github.com/lameduck-init/lameduck/cmd/lab/manifest"
	built "github.com/lameduck-init/lameduck/docs/check/internal/program"
)

const (
	root     = "../../.."
	examples = root + "/docs/examples/kubernetes/"
	program  = "/opt/lameduck/lameduck" // the path in the manifests' volumes
)

// lameduck is the path of the program, built as releases are built.
var lameduck string

func TestMain(m *testing.M) {
	built.Run(m, root, func(dir string) error {
		lameduck = filepath.Join(dir, "lameduck")
		return nil
	})
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

// read returns a file of the examples.
func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(examples + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// manifests returns the manifests that have pods, by name.
func manifests(t *testing.T) map[string][]byte {
	t.Helper()
	texts := map[string][]byte{}
	for _, name := range topLevel() {
		texts[name] = read(t, name)
	}
	if len(texts) < 5 {
		t.Fatalf("only %d manifests", len(texts))
	}
	built, err := manifest.Build(examples + "fleet/example")
	if err != nil {
		t.Fatal(err)
	}
	texts["fleet/example"] = built
	return texts
}

// topLevel returns the names of the manifests that are not in a folder.
func topLevel() (names []string) {
	paths, _ := filepath.Glob(examples + "*.yaml")
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// podOf returns the pod of a Deployment, and nil for other objects.
func podOf(object runtime.Object) *core.Pod {
	d, ok := object.(*apps.Deployment)
	if !ok {
		return nil
	}
	return &core.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
}

// TestManifests: each manifest has a Deployment, whose pods may run under Pod Security's
// restricted level and hold.
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

// TestWhen: each manifest says when to use it.
func TestWhen(t *testing.T) {
	for _, path := range append(topLevel(), holdPatch, "fleet/policy.yaml", "fleet/kyverno.yaml", "fleet/component/kustomization.yaml") {
		if text := string(read(t, path)); !strings.HasPrefix(text, "# When ") {
			t.Errorf("%s has no first line that begins with When", path)
		}
	}
}

// hardened checks a pod by the restricted level of Pod Security, newest version, and
// beyond: a read-only root file system, requests and limits.
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
				t.Errorf("%s mounts %s, which is not a volume of the pod", c.Name, mount.Name)
			}
		}
	}
}

// stops checks that each lameduck of the pod accepts its arguments without a warning and
// fits into the grace period, and that at least one holds.
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
		if holds(t, c, grace) {
			holding++
		}
	}
	if holding == 0 {
		t.Error("no container holds")
	}
}

// holds reports whether a container runs lameduck, as the command or as the preStop hook,
// and checks lameduck's arguments.
func holds(t *testing.T, c core.Container, grace int64) bool {
	t.Helper()
	env, words := start(t, c, grace)
	hook := []string(nil)
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Exec != nil {
		hook = c.Lifecycle.PreStop.Exec.Command
	}
	switch {
	case len(words) > 0 && (words[0] == program || words[0] == "/lameduck"):
		explain(t, c.Name, grace, env, words[1:])
	case len(hook) > 1 && hook[0] == program && hook[1] == "hold":
		checkHook(t, c.Name, hook, grace)
		explain(t, c.Name, grace, env, slices.Concat([]string{"--until=quiet"}, hook[2:], []string{"--", "server"}))
	default:
		return false
	}
	mounted := func(m core.VolumeMount) bool { return m.MountPath == filepath.Dir(program) && m.ReadOnly }
	if slices.Contains(append(words, hook...), program) && !slices.ContainsFunc(c.VolumeMounts, mounted) {
		t.Errorf("%s does not mount lameduck, or may write to it", c.Name)
	}
	return true
}

// start returns the environment and the command line of a container.
func start(t *testing.T, c core.Container, grace int64) (env, words []string) {
	t.Helper()
	words = slices.Concat(c.Command, c.Args)
	env = []string{"KUBERNETES_SERVICE_HOST=10.0.0.1", "LAMEDUCK_SERVICE_HOST=10.0.0.2", "LAMEDUCK_PORT=tcp://10.0.0.2:80"}
	if len(words) == 0 && strings.Contains(c.Image, "lameduck") {
		var ours []string
		ours, words = image(t)
		env = append(env, ours...)
	}
	for _, e := range c.Env {
		env = append(env, e.Name+"="+e.Value)
		if e.Name == "LAMEDUCK_GRACE_PERIOD" && e.Value != strconv.FormatInt(grace, 10) {
			t.Errorf("%s has a LAMEDUCK_GRACE_PERIOD of %s s, and the pod gives %d", c.Name, e.Value, grace)
		}
	}
	return env, words
}

// checkHook checks the arguments of lameduck hold.
func checkHook(t *testing.T, name string, hook []string, grace int64) {
	t.Helper()
	if !slices.Contains(hook, fmt.Sprintf("--grace-period=%d", grace)) {
		t.Errorf("%s: %q lacks the grace period, %d s", name, hook, grace)
	}
	help := exec.Command(lameduck, append(slices.Clone(hook[1:]), "--help")...)
	if out, err := help.CombinedOutput(); err != nil {
		t.Errorf("%q: %v\n%s", hook, err, out)
	}
}

// explain runs lameduck --explain.
func explain(t *testing.T, name string, grace int64, env, words []string) {
	t.Helper()
	cmd := exec.Command(lameduck, append([]string{"--explain"}, words...)...)
	cmd.Env = env
	var out, warnings bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &warnings
	if err := cmd.Run(); err != nil || warnings.Len() > 0 {
		t.Errorf("%s: %q: %v\n%s", name, words, err, warnings.String())
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

// image returns the environment and the command line of Dockerfile.example's image.
func image(t *testing.T) (env, words []string) {
	t.Helper()
	ours, err := manifest.Dockerfile(root + "/Dockerfile.example")
	if err != nil {
		t.Fatal(err)
	}
	return ours.Env, append(ours.Entrypoint, ours.Cmd...)
}

// TestInstall: the init containers' command installs a program that runs.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command(lameduck, "install", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(dir+"/lameduck", "--version").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
