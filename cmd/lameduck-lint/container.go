package main

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pod is the specification of a pod, or what another platform has in its place.
type pod struct {
	Grace          word `yaml:"terminationGracePeriodSeconds"`
	Containers     []container
	InitContainers []container `yaml:"initContainers"`
	HostNetwork    bool        `yaml:"hostNetwork"`
	Volumes        []volume
	Security       security `yaml:"securityContext"`

	platform entry
	object   string // that is or makes the pod: KIND/NAME
	Kind     string `yaml:"-"` // of the object; "" if no clients are sent to its pods while they are replaced
	meta     metadata
	services *[]service // of the file
	list     []*stop
	patch    bool // the grace period may stand elsewhere
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

// container is a container in a manifest, or the image of a Dockerfile, whose ENTRYPOINT and
// CMD are what command and args are in a manifest.
type container struct {
	Name          word
	Image         string
	Command       commandLine // nil: the image's
	Args          commandLine
	Env           variables
	EnvFrom       any      `yaml:"envFrom"`
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

	// Of other platforms.
	Grace      word
	StopSignal word `yaml:"stopSignal"`

	script func(string) string // the text of a file of a Dockerfile's image, as far as it is known
}

// port is a port of a container.
type port struct {
	Name     string
	Number   word `yaml:"containerPort"`
	Protocol string
}

// variable is an environment variable.
type variable struct {
	Name, Value word
	ValueFrom   word `yaml:"valueFrom"`
}

// variables are those of a container: a list, or NAME: VALUE.
type variables []variable

// UnmarshalYAML implements [yaml.Unmarshaler], for a list of NAME=VALUE too.
func (list *variables) UnmarshalYAML(n *yaml.Node) error {
	pairs := map[word]word{}
	var lines []word
	for _, form := range []any{&pairs, &lines, (*[]variable)(list)} {
		_ = n.Decode(form) // of others, nothing
	}
	for _, l := range lines {
		if name, value, isPair := strings.Cut(l.text, "="); isPair {
			*list = append(*list, variable{Name: word{name, l.line}, Value: word{value, l.line}})
		}
	}
	for name, value := range pairs {
		*list = append(*list, variable{Name: name, Value: value})
	}
	return nil
}

// security is what a pod or a container may do.
type security struct {
	Seccomp      struct{ Type string } `yaml:"seccompProfile"`
	Capabilities struct{ Add any }
}

// volume is a volume of a pod, or its place in a container.
type volume struct {
	Name      string
	EmptyDir  *struct{} `yaml:"emptyDir"`
	Image     any
	MountPath string `yaml:"mountPath"`
	SubPath   string `yaml:"subPath"`
}

// all returns all containers of the pod.
func (p *pod) all() []container { return slices.Concat(p.Containers, p.InitContainers) }

// mounting returns the containers that mount a volume.
func (p *pod) mounting(name string) (list []container) {
	for _, c := range p.all() {
		for _, m := range c.VolumeMounts {
			if m.Name == name {
				list = append(list, c)
			}
		}
	}
	return list
}

func (p *pod) volume(name string) (found volume) {
	for _, v := range p.Volumes {
		if v.Name == name {
			found = v
		}
	}
	return found
}

// The names of ports of gRPC, but for grpc-web, and of h2c protocols that Services name.
const (
	grpc pattern = `^grpc(-([^w]|w[^e]).*)?$`
	h2c  pattern = `^(kubernetes\.io/h2c|grpc)$`
)

// speaksGRPC reports whether a port is gRPC's by its name, or by the protocol that a Service gives it.
func (p *pod) speaksGRPC(to port) bool {
	for _, s := range *p.services {
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

// File returns the text of a file in the image, or "".
func (c *container) File(name string) string {
	if c.script == nil {
		return ""
	}
	return c.script(name)
}

// IsOpen reports whether variables from elsewhere may be added: to a patch, which has no image, too.
func (c *container) IsOpen() bool { return c.Image == "" || c.EnvFrom != nil }
