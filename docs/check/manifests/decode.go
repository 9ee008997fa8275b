// Package manifests decodes the manifests of docs/examples/kubernetes and of the pages: an
// unknown or misspelled field is an error. What the flags and times in the manifests come to
// is lameduck-lint's subject.
package manifests

import (
	"bytes"
	"errors"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Decode returns the objects of a manifest.
func Decode(text []byte) (list []runtime.Object, err error) {
	scheme := runtime.NewScheme()
	kinds := runtime.NewSchemeBuilder(admission.AddToScheme, apps.AddToScheme, core.AddToScheme)
	err = kinds.AddToScheme(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		object, _, e := decoder.Decode(part, nil, nil)
		err = errors.Join(err, e)
		list = append(list, object)
	}
	return list, err
}
