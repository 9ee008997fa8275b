package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// templates are the paths of the pods' specification, by kind.
var templates = map[string][]string{
	"Pod":         {"spec"},
	"PodTemplate": {"template", "spec"},
	"CronJob":     {"spec", "jobTemplate", "spec", "template", "spec"},
}

// otherTemplate is the path of the pods' specification in all other kinds: Deployment,
// StatefulSet, and kinds from elsewhere, such as Argo's Rollout, Knative's Service, OpenShift's
// DeploymentConfig and OpenKruise's CloneSet.
var otherTemplate = []string{"spec", "template", "spec"}

// errTemplate is the error for a template of a manifest.
var errTemplate = errors.New("a template, not a manifest: render it first (helm template, kustomize build), and " +
	"lint the output")

// errNoKind is the error for YAML or JSON that is no manifest, such as a Compose file.
var errNoKind = errors.New("not a Kubernetes manifest: no object has a kind")

// lintManifest returns the findings for a file of manifests, YAML or JSON, with errNoKind if no
// document is a manifest.
func lintManifest(text []byte) (found []finding, err error) {
	var other, manifests int
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		err := documents.Decode(&document)
		if err == nil && !(node{&document}).templated() {
			err = bounded(&document)
		}
		switch {
		case err == io.EOF && other > 0 && manifests == 0:
			return nil, errNoKind
		case err == io.EOF:
			return found, nil
		case err != nil && bytes.Contains(text, []byte("{{")) || err == nil && (node{&document}).templated():
			return nil, errTemplate
		case err != nil:
			return nil, fmt.Errorf("invalid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		for _, content := range document.Content {
			object := node{content}
			switch {
			case object.get("kind").exists() || podIn(object).exists():
				manifests++
			case object.exists():
				other++
			}
			found = append(found, lintObject(object)...)
		}
	}
}

// bounded returns an error for anchors that contain themselves or expand too far.
func bounded(document *yaml.Node) error {
	var value any
	if err := document.Decode(&value); !errors.As(err, new(*yaml.TypeError)) { // kubectl accepts these
		return err
	}
	return nil
}

// lintObject returns the findings for an object or a list of objects.
func lintObject(object node) (found []finding) {
	kind := object.get("kind").text()
	if strings.HasSuffix(kind, "List") {
		for _, item := range object.get("items").list() {
			found = append(found, lintObject(item)...)
		}
	}
	if spec := podIn(object); spec.exists() {
		found = append(found, lintPod(spec, object)...)
	}
	return found
}

// podIn returns the specification of the pods that an object makes, if any.
func podIn(object node) node {
	path, ok := templates[object.get("kind").text()]
	if !ok {
		path = otherTemplate
	}
	return object.get(path...)
}
