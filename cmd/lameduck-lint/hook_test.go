package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// decode reads a YAML file of the checkout.
func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestHooks: what .pre-commit-hooks.yaml and action.yml run builds the linter, from another
// folder, and lints the files that are named.
func TestHooks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("pre-commit and GitHub run a shell of their own there")
	}
	var hooks []struct{ ID, Entry, Language string }
	decode(t, ".pre-commit-hooks.yaml", &hooks)
	var action struct {
		Runs struct{ Steps []struct{ Shell, Run string } }
	}
	decode(t, "action.yml", &action)
	if len(hooks) != 2 || hooks[0].Language != "script" || len(action.Runs.Steps) != 2 {
		t.Fatal(hooks, action)
	}
	entry, _ := filepath.Abs(filepath.Join(root, hooks[0].Entry))
	t.Chdir(t.TempDir())
	pod := "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: 'nginx:1.14.2'}]}\n"
	for _, file := range []string{"bad.yaml", "b d.yaml", "other.yaml"} {
		if err := os.WriteFile(file, []byte(pod), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	step := exec.Command(action.Runs.Steps[1].Shell, "-e", "-c", action.Runs.Steps[1].Run)
	step.Env = append(os.Environ(), "RUN="+entry, "PATHS=bad.yaml\n\nb d.yaml\n")
	for what, cmd := range map[string]*exec.Cmd{
		"the hook":   exec.Command(entry, "bad.yaml", "b d.yaml"),
		"the action": step,
	} {
		out, err := cmd.Output()
		if _, failed := err.(*exec.ExitError); !failed || strings.Count(string(out), "cut-at-term") != 2 || strings.Contains(string(out), "other") {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
}
