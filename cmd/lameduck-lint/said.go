package main

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// word is a word of a file, and its line; the line of a missing word is 0. What only the
// cluster or the build knows is written $(NAME) in the text, as in Kubernetes.
type word struct {
	text string
	line int
}

// UnmarshalYAML implements [yaml.Unmarshaler]. Values that are not scalars are not known.
func (w *word) UnmarshalYAML(n *yaml.Node) error {
	w.text, w.line = n.Value, n.Line
	if n.Kind != yaml.ScalarNode {
		w.text = "$()"
	}
	return nil
}

func (w word) base() string { return path.Base(w.text) }

// isPlain reports whether a word is no flag.
func (w word) isPlain() bool { return !strings.HasPrefix(w.text, "-") }

// wordsAt returns the words of a line.
func wordsAt(line int, texts []string) []word {
	words := make([]word, len(texts))
	for i, text := range texts {
		words[i] = word{text, line}
	}
	return words
}

// texts returns the texts of words.
func texts(words []word) (list []string) {
	for _, w := range words {
		list = append(list, w.text)
	}
	return list
}

// manifest is what the objects of a file come to.
type manifest struct {
	pods      []*pod
	services  []service
	hasObject bool
}

// metadata is that of an object or a pod.
type metadata struct {
	Name        word
	Annotations map[string]word
	Labels      map[string]word
}

// service is the specification of a Service.
type service struct {
	Selector map[string]word
	Ports    []struct {
		Protocol   string `yaml:"appProtocol"`
		Port       word
		TargetPort word `yaml:"targetPort"`
	}
}

// pod is the specification of a pod.
type pod struct {
	Grace          word `yaml:"terminationGracePeriodSeconds"`
	Containers     []container
	InitContainers []container `yaml:"initContainers"`
	HostNetwork    bool        `yaml:"hostNetwork"`
	Volumes        []volume
	Security       security `yaml:"securityContext"`

	object   string // that is or makes the pod: KIND/NAME
	meta     metadata
	file     *manifest
	replaced bool // while clients are sent to it
	patch    bool // the grace period may stand elsewhere
}

// container is a container in a manifest, or the image of a Dockerfile, whose ENTRYPOINT and
// CMD are what command and args are in a manifest.
type container struct {
	Name          word
	Image         string
	Command       []word // nil: the image's
	Args          []word
	Env           []variable
	EnvFrom       []any    `yaml:"envFrom"`
	VolumeMounts  []volume `yaml:"volumeMounts"`
	Ports         []port
	Readiness     map[string]any `yaml:"readinessProbe"`
	Security      security       `yaml:"securityContext"`
	RestartPolicy string         `yaml:"restartPolicy"`
	Lifecycle     struct {
		StopSignal word `yaml:"stopSignal"`
		PreStop    *struct {
			Exec    struct{ Command []word }
			HTTPGet struct{ Path word } `yaml:"httpGet"`
			Sleep   struct{ Seconds word }
		} `yaml:"preStop"`
	}

	script func(string) string // the text of a file of a Dockerfile's image, as far as it is known
}

// port is a port of a container.
type port struct {
	Name   string
	Number word `yaml:"containerPort"`
}

// variable is an environment variable.
type variable struct {
	Name, Value word
	ValueFrom   word `yaml:"valueFrom"`
}

// security is what a pod or a container may do.
type security struct {
	Seccomp      struct{ Type string } `yaml:"seccompProfile"`
	Capabilities struct{ Add any }
}

// volume is a volume of a pod, or its place in a container.
type volume struct {
	Name      string
	EmptyDir  any `yaml:"emptyDir"`
	Image     any
	MountPath string `yaml:"mountPath"`
	SubPath   string `yaml:"subPath"`
}

// isEmpty reports whether a volume is an emptyDir that no more than one container of the pod
// mounts, and so nothing fills.
func (p *pod) isEmpty(name string) bool {
	mounts := 0
	for _, c := range slices.Concat(p.InitContainers, p.Containers) {
		for _, m := range c.VolumeMounts {
			if m.Name == name {
				mounts++
			}
		}
	}
	return mounts == 1 && p.volume(name).EmptyDir != nil
}

func (p *pod) volume(name string) (found volume) {
	for _, v := range p.Volumes {
		if v.Name == name {
			found = v
		}
	}
	return found
}

// has reports whether a container has a port. Nothing is known of the pods of an image.
func (p *pod) has(number uint16) bool {
	return p == nil || slices.ContainsFunc(slices.Concat(p.Containers, p.InitContainers), func(c container) bool {
		return slices.ContainsFunc(c.Ports, func(to port) bool { return to.Number.text == fmt.Sprint(number) })
	})
}

// speaksGRPC reports whether a port is gRPC's by its name, or by the protocol that a Service gives it.
func (p *pod) speaksGRPC(to port) bool {
	for _, s := range p.file.services {
		selects := len(s.Selector) > 0
		for key, value := range s.Selector {
			selects = selects && p.meta.Labels[key].text == value.text
		}
		for _, from := range s.Ports {
			target := cmp.Or(from.TargetPort.text, from.Port.text)
			if selects && h2c.matches(from.Protocol) && (target == to.Number.text || target == to.Name) {
				return true
			}
		}
	}
	return grpc.matches(to.Name)
}

// mountAt returns what a container mounts at a path or above.
func (c *container) mountAt(file string) volume {
	for dir := path.Clean(file); len(dir) > 1; dir = path.Dir(dir) {
		for _, m := range c.VolumeMounts {
			if path.Clean(m.MountPath) == dir {
				return m
			}
		}
	}
	return volume{}
}

// file returns the text of a file in the image, or "".
func (c *container) file(name string) string {
	if c.script == nil {
		return ""
	}
	return c.script(name)
}

// isOpen reports whether variables from elsewhere may be added: to a patch, which has no image, too.
func (c *container) isOpen() bool { return c.Image == "" || len(c.EnvFrom) > 0 }

// variable returns the text of a variable; of variables with one name the last counts.
func (c *container) variable(name string) (text string) {
	for _, v := range c.Env {
		if v.Name.text == name {
			text = v.Value.text
		}
	}
	return text
}
