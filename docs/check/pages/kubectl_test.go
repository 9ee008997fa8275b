package pages

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// webManifest is the object to which commands of kubectl are applied, without a server.
const webManifest = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
	"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
	"initContainers": [{"name": "istio-proxy", "image": "proxy", "restartPolicy": "Always"}],
	"containers": [{"name": "web", "image": "web"}]}}}}`

// kubectl checks the commands that kubectl also performs without a server, and reports
// whether words are such a command.
func kubectl(t *testing.T, words []string) bool {
	t.Helper()
	if len(words) < 3 || words[0] != "kubectl" {
		return false
	}
	switch words[1] {
	case "set":
		setsVariables(t, words[2:])
	case "get":
		i := slices.Index(words, "-o")
		if i < 0 || i+1 == len(words) {
			t.Fatalf("no -o in %q", words)
		}
		printsPod(t, words[i+1])
	case "rollout", "logs", "delete", "describe":
	default:
		return false
	}
	return true
}

// setsVariables checks kubectl set env: the variables are lameduck's, and kubectl accepts
// the assignments.
func setsVariables(t *testing.T, words []string) {
	t.Helper()
	if words[0] != "env" {
		t.Fatalf("no rule for %q", words)
	}
	var c call
	for _, word := range words[1:] {
		if strings.Contains(word, "=") {
			c.env = append(c.env, word)
		}
	}
	c.check(t)
	offline(t, webManifest, append([]string{"set", "env", "--local", "-o", "name"}, c.env...)...)
}

// printsPod checks a template of kubectl get, which must print something for a pod.
func printsPod(t *testing.T, template string) {
	t.Helper()
	pod := strings.Replace(webManifest, `"apps/v1", "kind": "Deployment"`, `"v1", "kind": "Pod"`, 1)
	pod = strings.Replace(pod, `"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {`, "", 1)
	pod = strings.TrimSuffix(pod, "}}")
	out := offline(t, pod, "patch", "--local", "--type=merge", "-p", `{"metadata":{"name":"pod"}}`, "-o", template)
	if strings.TrimSpace(out) != "istio-proxy=Always" {
		t.Errorf("kubectl prints %q", out)
	}
}

// offline runs kubectl on a manifest, without a server.
func offline(t *testing.T, manifest string, args ...string) string {
	t.Helper()
	needs(t, "kubectl")
	file := filepath.Join(t.TempDir(), "web.json")
	if err := os.WriteFile(file, []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("kubectl", append(args, "-f", file)...).CombinedOutput()
	if err != nil {
		t.Errorf("kubectl %q: %v: %s", args, err, out)
	}
	return string(out)
}
