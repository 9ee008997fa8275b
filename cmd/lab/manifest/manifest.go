// Package manifest reads the manifests of docs/examples/kubernetes and
// Dockerfile.example, so that tests and programs need not repeat the contents.
package manifest

import (
	"bytes"
	"errors"
	"fmt"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kinds are the possible kinds of objects in a manifest.
var kinds = map[string]func() runtime.Object{
	"v1/ConfigMap":       func() runtime.Object { return new(core.ConfigMap) },
	"v1/Service":         func() runtime.Object { return new(core.Service) },
	"apps/v1/Deployment": func() runtime.Object { return new(apps.Deployment) },
	"admissionregistration.k8s.io/v1/MutatingAdmissionPolicy":        func() runtime.Object { return new(admissionregistration.MutatingAdmissionPolicy) },
	"admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding": func() runtime.Object { return new(admissionregistration.MutatingAdmissionPolicyBinding) },
}

// Parts returns the documents of a manifest.
func Parts(text []byte) [][]byte { return bytes.Split(text, []byte("\n---\n")) }

// Objects reads a manifest. An unknown field is an error.
func Objects(text []byte) (list []runtime.Object, err error) {
	for _, part := range Parts(text) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(part, &head); err != nil {
			return nil, err
		}
		fresh := kinds[head.APIVersion+"/"+head.Kind]
		if fresh == nil {
			return nil, fmt.Errorf("unknown kind %s/%s", head.APIVersion, head.Kind)
		}
		object := fresh()
		if e := yaml.UnmarshalStrict(part, object); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", head.Kind, e))
		}
		list = append(list, object)
	}
	return list, err
}

// Build returns the output of kustomize for a folder.
func Build(dir string) ([]byte, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	return built.AsYaml()
}
