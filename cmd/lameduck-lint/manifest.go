package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// object is an object in a manifest, or a list of objects.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   metadata
	Items      []object
	Spec       struct {
		pod         `yaml:",inline"`
		Template    template
		service     `yaml:",inline"`
		Strategy    struct{ Type string }
		JobTemplate struct{ Spec struct{ Template template } } `yaml:"jobTemplate"`
	}
	Template template
}

// template is a template of pods. In manifests without pods, there is another value under
// the same key, or none.
type template struct {
	Metadata metadata
	Spec     *pod
}

// errNoKind is the error for YAML or JSON that is no manifest, such as a Compose file.
var errNoKind = errors.New("left out: no object has a kind, as in a Compose file")

// lintManifest returns the findings for a file of manifests, YAML or JSON, or errNoKind if no
// document is a manifest. Values of types that a field does not take are left out: in some
// kinds the fields are others, and kubectl checks the rest. Decoding any value first finds
// anchors that contain themselves or expand too far, and {{ … }}, a mapping as a key.
func lintManifest(text []byte) (found []finding, err error) {
	var m manifest
	isEmpty := true
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
		_ = document.Decode(&o)
		m.add(&o)
		isEmpty = isEmpty && value == nil
	}
	if !isEmpty && !m.hasObject {
		return nil, errNoKind
	}
	for _, p := range m.pods {
		found = append(found, judge(p.stops()...)...)
	}
	return found, nil
}

// add adds the pods that an object is or makes, and the Services. Most kinds have a pod in the same place:
// Deployment, StatefulSet, and kinds from elsewhere, such as Argo's Rollout, Knative's Service,
// OpenShift's DeploymentConfig and OpenKruise's CloneSet.
func (m *manifest) add(o *object) {
	for i := range o.Items {
		m.add(&o.Items[i])
	}
	t := o.Spec.Template
	switch o.Kind {
	case "Service":
		m.services = append(m.services, o.Spec.service)
	case "Pod":
		t = template{o.Metadata, &o.Spec.pod}
	case "PodTemplate":
		t = o.Template
	case "CronJob":
		t = o.Spec.JobTemplate.Spec.Template
	}
	m.hasObject = m.hasObject || o.Kind != "" || t.Spec != nil
	if p := t.Spec; p != nil {
		// Knative makes timeoutSeconds the grace period; the default is the cluster's.
		p.patch = strings.HasPrefix(o.APIVersion, "serving.knative.dev/")
		p.replaced = replaced.matches(o.Kind) && o.Spec.Strategy.Type != "Recreate"
		p.object, p.meta, p.file = strings.Trim(o.Kind+"/"+o.Metadata.Name.text, "/"), t.Metadata, m
		m.pods = append(m.pods, p)
	}
}
