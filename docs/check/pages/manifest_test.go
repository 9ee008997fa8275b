package pages

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// manifest checks YAML for Kubernetes or Compose: whole objects, a pod's spec, or the part
// of a container. An unknown field is an error.
func manifest(t *testing.T, text string) {
	for _, part := range bytes.Split([]byte(text), []byte("\n---\n")) {
		var head map[string]any
		if err := yaml.Unmarshal(part, &head); err != nil {
			t.Fatal(err)
		}
		switch {
		case head["services"] != nil:
			compose(t, part)
		case head["kind"] == "Pod":
			pod(t, strict[core.Pod](t, part).Spec)
		case head["kind"] == "Deployment":
			template := strict[apps.Deployment](t, part).Spec.Template
			mesh(t, template)
			pod(t, template.Spec)
		case head["kind"] != nil:
			t.Errorf("no rule for a %v", head["kind"])
		case head["spec"] != nil: // a patch for a Deployment
			pod(t, strict[apps.Deployment](t, part).Spec.Template.Spec)
		case head["containers"] != nil:
			pod(t, strict[core.PodSpec](t, part))
		default:
			pod(t, core.PodSpec{Containers: []core.Container{strict[core.Container](t, part)}})
		}
	}
}

func strict[T any](t *testing.T, text []byte) (object T) {
	t.Helper()
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	return object
}

// pod checks each call of lameduck in a pod.
func pod(t *testing.T, spec core.PodSpec) {
	t.Helper()
	grace := ""
	if seconds := spec.TerminationGracePeriodSeconds; seconds != nil {
		grace = strconv.FormatInt(*seconds, 10)
	}
	for _, c := range spec.InitContainers {
		if len(c.Command) < 2 || c.Command[1] != "install" {
			t.Errorf("%s does not install", c.Name)
		}
	}
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		main := call{argv: append(c.Command, c.Args...), grace: grace}
		main.runs(c.Image)
		for _, v := range c.Env {
			main.env = append(main.env, v.Name+"="+v.Value)
		}
		main.check(t)
		if hooks := c.Lifecycle; hooks != nil && hooks.PreStop != nil && hooks.PreStop.Exec != nil {
			call{argv: hooks.PreStop.Exec.Command, grace: grace}.check(t)
		}
		checkMounts(t, spec, c)
	}
}

// checkMounts reports an error where a container mounts a volume that the pod lacks.
func checkMounts(t *testing.T, spec core.PodSpec, c core.Container) {
	t.Helper()
	for _, m := range c.VolumeMounts {
		exists := slices.ContainsFunc(spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name })
		if !exists && spec.Volumes != nil {
			t.Errorf("%s mounts %s, which is not a volume of the pod", c.Name, m.Name)
		}
	}
}

// words are a command as Compose accepts commands.
type words []string

func (w *words) UnmarshalJSON(text []byte) error {
	var line string
	if err := yaml.Unmarshal(text, &line); err == nil {
		*w = strings.Fields(line)
		return nil
	}
	return yaml.Unmarshal(text, (*[]string)(w))
}

// project is the part of a Compose file that the pages use.
type project struct {
	Services map[string]struct {
		Image           string            `json:"image"`
		Build           string            `json:"build"`
		Entrypoint      words             `json:"entrypoint"`
		Command         words             `json:"command"`
		Environment     map[string]string `json:"environment"`
		StopGracePeriod string            `json:"stop_grace_period"`
		StopSignal      string            `json:"stop_signal"`
		Init            bool              `json:"init"`
		Volumes         []string          `json:"volumes"`
	} `json:"services"`
}

// compose checks each service.
func compose(t *testing.T, text []byte) {
	t.Helper()
	for name, s := range strict[project](t, text).Services {
		c := call{argv: append(s.Entrypoint, s.Command...), grace: period(t, s.StopGracePeriod)}
		c.runs(s.Image)
		for variable, value := range s.Environment {
			c.env = append(c.env, variable+"="+value)
		}
		if s.Init && len(c.env) > 0 {
			t.Errorf("%s has two inits", name)
		}
		c.check(t)
	}
}

// period returns a duration in seconds, and "" for "".
func period(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Error(err)
	}
	return strconv.Itoa(int(d.Seconds()))
}
