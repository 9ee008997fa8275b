package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// templates are where each kind has its pods' specification.
var templates = map[string][]string{
	"Pod":         {"spec"},
	"Deployment":  {"spec", "template", "spec"},
	"StatefulSet": {"spec", "template", "spec"},
	"DaemonSet":   {"spec", "template", "spec"},
	"ReplicaSet":  {"spec", "template", "spec"},
	"Job":         {"spec", "template", "spec"},
	"CronJob":     {"spec", "jobTemplate", "spec", "template", "spec"},
}

// errTemplate is about a file that is no manifest yet.
var errTemplate = errors.New("it is a template: render it first (helm template, kustomize build) and lint what comes out")

// lintManifest finds what is wrong in a file of manifests, YAML or JSON.
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
			return nil, fmt.Errorf("it is no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		for _, content := range document.Content {
			found = append(found, lintObject(node{content})...)
		}
	}
}

// bounded reports anchors that contain themselves, or far too much.
func bounded(document *yaml.Node) error {
	var value any
	if err := document.Decode(&value); !errors.As(err, new(*yaml.TypeError)) { // of which kubectl makes what it can
		return err
	}
	return nil
}

// lintObject is for one object, or a list of them.
func lintObject(object node) (found []finding) {
	kind := object.get("kind").text()
	if strings.HasSuffix(kind, "List") {
		for _, item := range object.get("items").list() {
			found = append(found, lintObject(item)...)
		}
	}
	if spec := object.get(templates[kind]...); templates[kind] != nil && spec.there() {
		found = append(found, lintPod(spec, kind == "Job" || kind == "CronJob")...)
	}
	return found
}
