package pages

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsimple"
)

// job is the part of Nomad's job specification that the pages use.
type job struct {
	Jobs []struct {
		Name   string `hcl:"name,label"`
		Groups []struct {
			Name     string `hcl:"name,label"`
			Shutdown string `hcl:"shutdown_delay,optional"`
			Tasks    []struct {
				Name        string            `hcl:"name,label"`
				Driver      string            `hcl:"driver"`
				KillTimeout string            `hcl:"kill_timeout"`
				KillSignal  string            `hcl:"kill_signal,optional"`
				Env         map[string]string `hcl:"env,optional"`
				Config      struct {
					Image      string   `hcl:"image,optional"`
					Entrypoint []string `hcl:"entrypoint,optional"`
					Command    string   `hcl:"command,optional"`
					Args       []string `hcl:"args,optional"`
					Ports      []string `hcl:"ports,optional"`
				} `hcl:"config,block"`
			} `hcl:"task,block"`
		} `hcl:"group,block"`
	} `hcl:"job,block"`
}

// nomad checks a job.
func nomad(t *testing.T, text string) {
	var j job
	if err := hclsimple.Decode("job.hcl", []byte(text), nil, &j); err != nil {
		t.Fatal(err)
	}
	for _, group := range j.Jobs[0].Groups {
		for _, task := range group.Tasks {
			c := call{grace: period(t, task.KillTimeout), argv: task.Config.Entrypoint}
			c.runs(task.Config.Image)
			if task.Config.Command != "" {
				c.argv = append(c.argv, task.Config.Command)
			}
			c.argv = append(c.argv, task.Config.Args...)
			for name, value := range task.Env {
				c.env = append(c.env, name+"="+value)
			}
			c.check(t)
		}
	}
}

// definition is the part of ECS's task definition that the pages use.
type definition struct {
	Family     string `json:"family"`
	Containers []struct {
		Name        string   `json:"name"`
		Image       string   `json:"image"`
		EntryPoint  []string `json:"entryPoint"`
		Command     []string `json:"command"`
		StopTimeout int      `json:"stopTimeout"`
		Essential   bool     `json:"essential"`
		Environment []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"environment"`
	} `json:"containerDefinitions"`
}

// ecs checks a task definition.
func ecs(t *testing.T, text string) {
	var d definition
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	for _, container := range d.Containers {
		c := call{argv: append(container.EntryPoint, container.Command...), grace: strconv.Itoa(container.StopTimeout)}
		c.runs(container.Image)
		for _, v := range container.Environment {
			c.env = append(c.env, v.Name+"="+v.Value)
		}
		c.check(t)
	}
}

// quadlet are the keys of a [Container] that the pages use.
var quadlet = []string{"Image", "Exec", "Entrypoint", "Environment", "StopTimeout", "StopSignal", "PodmanArgs", "PublishPort"}

// unit checks a unit of systemd, or one of Podman's Quadlet.
func unit(t *testing.T, text string) {
	var c call
	section, service := "", true
	var entrypoint, run []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "["):
			section = line
			service = service && section != "[Container]"
			continue
		case line == "":
			continue
		case section == "[Container]" && !slices.Contains(quadlet, key):
			t.Errorf("no rule for %s", key)
		}
		switch key {
		case "Image":
			c.runs(value)
		case "Environment":
			c.env = append(c.env, fields(t, value)...)
		case "Entrypoint":
			entrypoint = fields(t, value)
		case "Exec", "ExecStart":
			run = fields(t, value)
		case "StopTimeout":
			c.grace = value
		case "PodmanArgs":
			_, c.grace, _ = strings.Cut(value, "--stop-timeout=")
		case "TimeoutStopSec":
			if service {
				c.grace = value
			}
		}
	}
	c.argv = append(entrypoint, run...)
	c.check(t)
	if service {
		verify(t, text)
	}
}

// verify gives a unit to systemd-analyze, with the programs in bin.
func verify(t *testing.T, text string) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("systemd-analyze is not installed")
		return
	}
	file := filepath.Join(t.TempDir(), "web.service")
	text = strings.ReplaceAll(text, "/usr/local/bin/", bin+"/")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), file) {
		t.Errorf("systemd-analyze: %v: %s", err, out)
	}
}
