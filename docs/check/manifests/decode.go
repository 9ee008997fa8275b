// Package manifests decodes the manifests of docs/examples/kubernetes and of the pages: an
// unknown or misspelled field is an error. What the flags and times in the manifests come to
// is lameduck-lint's subject.
package manifests

import (
	"bytes"
	"errors"
	"fmt"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Decode returns the objects of a manifest.
func Decode(text []byte) (list []any, err error) {
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(part, &head); err != nil {
			return nil, err
		}
		var object any
		switch kind := head.APIVersion + "/" + head.Kind; kind {
		case "v1/Pod":
			object = new(core.Pod)
		case "v1/ConfigMap":
			object = new(core.ConfigMap)
		case "v1/Service":
			object = new(core.Service)
		case "apps/v1/Deployment":
			object = new(apps.Deployment)
		case "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy":
			object = new(admission.MutatingAdmissionPolicy)
		case "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding":
			object = new(admission.MutatingAdmissionPolicyBinding)
		default:
			return nil, fmt.Errorf("unknown kind %s", kind)
		}
		if e := yaml.UnmarshalStrict(part, object); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", head.Kind, e))
		}
		list = append(list, object)
	}
	return list, err
}
