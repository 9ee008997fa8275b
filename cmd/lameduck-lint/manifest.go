package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// object is an object in a manifest, or a list of objects. Other platforms have containers in its place.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Name       word
	Metadata   metadata
	Items      []object
	Spec       struct {
		pod         `yaml:",inline"`
		Template    podTemplate
		service     `yaml:",inline"`
		Strategy    struct{ Type string }
		JobTemplate struct {
			Spec struct{ Template podTemplate }
		} `yaml:"jobTemplate"`
	}
	Template   podTemplate
	Containers []container
	Services   map[word]container
}

// podTemplate is a template of pods. In manifests without pods, there is another value under
// the same key, or none.
type podTemplate struct {
	Metadata metadata
	Spec     *pod
}

// manifest is what the objects of a file come to.
type manifest struct {
	pods     []*pod
	services []service
}

// errNoKind is the error for YAML or JSON that is no manifest.
var errNoKind = errors.New("left out: no object has a kind, and it is none of ECS, Nomad or Compose")

// stopsInManifest returns the stops in a file of manifests, YAML or JSON, or errNoKind if no
// document is a manifest. Values of types that a field does not take are left out: in some
// kinds the fields are others, and kubectl checks the rest. Decoding any value first finds
// anchors that contain themselves or expand too far, and {{ … }}, a mapping as a key.
func stopsInManifest(text []byte) (stops []*stop, err error) {
	var m manifest
	isKnown, isEmpty := false, true
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		var value any
		err := documents.Decode(&document)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = document.Decode(&value)
		}
		switch {
		case err == nil || errors.As(err, new(*yaml.TypeError)):
		case bytes.Contains(text, []byte("{{")):
			return nil, errors.New("a template, not a manifest: render it first (helm template, kustomize build), " +
				"and lint the output")
		default:
			return nil, fmt.Errorf("invalid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		var o object
		platform := platformOf(value)
		if names := platform["names"]; names != "" {
			translate(&document, " "+names)
		}
		_ = document.Decode(&o)
		m.add(&o, platform)
		isKnown, isEmpty = isKnown || platform != nil, isEmpty && value == nil
	}
	if !isEmpty && !isKnown {
		return nil, errNoKind
	}
	for _, p := range m.pods {
		stops = append(stops, p.stops()...)
	}
	return stops, nil
}

// add adds the pods that an object is or makes, and the Services. Most kinds have a pod in the same place:
// Deployment, StatefulSet, and kinds from elsewhere, such as Argo's Rollout, Knative's Service,
// OpenShift's DeploymentConfig and OpenKruise's CloneSet.
func (m *manifest) add(o *object, platform entry) {
	for i := range o.Items {
		m.add(&o.Items[i], platform)
	}
	t := o.Spec.Template
	for name, c := range o.Services {
		c.Name = name
		o.Containers = append(o.Containers, c)
	}
	switch {
	case o.Containers != nil:
		o.Kind, o.Metadata.Name = platform["platform"], o.Name
		t.Spec = &pod{Containers: o.Containers}
	case o.Kind == "Service":
		m.services = append(m.services, o.Spec.service)
	case o.Kind == "Pod":
		t = podTemplate{o.Metadata, &o.Spec.pod}
	case o.Kind == "PodTemplate":
		t = o.Template
	case o.Kind == "CronJob":
		t = o.Spec.JobTemplate.Spec.Template
	}
	if p := t.Spec; p != nil {
		// Knative makes timeoutSeconds the grace period; the default is the cluster's.
		p.patch = strings.HasPrefix(o.APIVersion, "serving.knative.dev/")
		if o.Spec.Strategy.Type != "Recreate" {
			p.Kind = o.Kind
		}
		p.platform, p.object = platform, strings.Trim(o.Kind+"/"+o.Metadata.Name.text, "/")
		p.meta, p.services = t.Metadata, &m.services
		m.pods = append(m.pods, p)
	}
}

// platformOf returns the platform of a document by its keys, or nil.
func platformOf(value any) entry {
	keys, _ := value.(map[string]any)
	for _, p := range platforms {
		for top := range strings.FieldsSeq(p["top"]) {
			if _, isOf := keys[top]; isOf {
				return p
			}
		}
	}
	return nil
}

// inText matches variables in the text of a file.
const inText pattern = `\$+(\{[^}]*\}|\w+)`

// translate gives a document of another platform the names that Kubernetes has. Of variables nothing is known.
func translate(n *yaml.Node, names string) {
	n.Value = inText.compile().ReplaceAllLiteralString(n.Value, unknown)
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		_, rest, isNamed := strings.Cut(names, " "+key.Value+"=")
		name, _, _ := strings.Cut(rest, " ")
		if isNamed && (name != "<<" || n.Content[i+1].Kind != yaml.ScalarNode) {
			key.Value, key.Tag, key.Style = name, "", 0
		}
	}
	for _, child := range n.Content {
		translate(child, names)
	}
}
