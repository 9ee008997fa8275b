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
	"Deployment":  {"spec", "template", "spec"},
	"StatefulSet": {"spec", "template", "spec"},
	"DaemonSet":   {"spec", "template", "spec"},
	"ReplicaSet":  {"spec", "template", "spec"},
	"Job":         {"spec", "template", "spec"},
	"CronJob":     {"spec", "jobTemplate", "spec", "template", "spec"},
}

// errTemplate is the error for a template of a manifest.
var errTemplate = errors.New("a template, not a manifest: render it first (helm template, kustomize build), and lint the output")

// lintManifest returns the findings for a file of manifests, YAML or JSON.
func lintManifest(text []byte) (found []finding, err error) {
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		err := documents.Decode(&document)
		if err == nil && !(node{&document}).templated() {
			err = bounded(&document)
		}
		switch {
		case err == io.EOF:
			return found, nil
		case err != nil && bytes.Contains(text, []byte("{{")) || err == nil && (node{&document}).templated():
			return nil, errTemplate
		case err != nil:
			return nil, fmt.Errorf("invalid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		for _, content := range document.Content {
			found = append(found, lintObject(node{content})...)
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
	if spec := object.get(templates[kind]...); templates[kind] != nil && spec.exists() {
		found = append(found, lintPod(spec, kind == "Job" || kind == "CronJob")...)
	}
	return found
}
