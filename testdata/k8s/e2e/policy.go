package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// group is where the policies are.
const group = "admissionregistration.k8s.io"

// policy lets fleet/policy.yaml change the pods of our namespace, and of no other,
// until it ends.
func policy(ctx context.Context, c *cluster) (end func() error, err error) {
	version, err := c.policyVersion()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile("fleet/policy.yaml")
	if err != nil {
		return nil, err
	}
	name := c.namespace // the policies have no namespaces
	resource := func(plural string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
	}
	plurals := []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}
	end = func() error {
		var first error
		for _, plural := range plurals {
			err := c.dynamic.Resource(resource(plural)).Delete(context.WithoutCancel(ctx), name, meta.DeleteOptions{})
			if first == nil {
				first = ignore(err, errors.IsNotFound)
			}
		}
		return first
	}
	for i, part := range bytes.Split([]byte(c.policyText(string(text))), []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(part, &object.Object); err != nil {
			return end, err
		}
		object.SetAPIVersion(group + "/" + version)
		object.SetName(name)
		if i == 0 {
			err = unstructured.SetNestedStringMap(object.Object, map[string]string{core.LabelMetadataName: c.namespace}, "spec", "matchConstraints", "namespaceSelector", "matchLabels")
		} else {
			err = unstructured.SetNestedField(object.Object, name, "spec", "policyName")
		}
		if err != nil {
			return end, err
		}
		_, err := c.dynamic.Resource(resource(plurals[i])).Create(ctx, object, meta.CreateOptions{})
		if errors.IsForbidden(err) {
			return end, refusal(err.Error())
		}
		if err != nil {
			return end, fmt.Errorf("cannot make the policy: %w", err)
		}
	}
	return end, c.works(ctx)
}

// policyVersion is the newest that the cluster has.
func (c *cluster) policyVersion() (string, error) {
	for _, version := range []string{"v1", "v1beta1"} {
		list, err := c.Discovery().ServerResourcesForGroupVersion(group + "/" + version)
		if ignore(err, errors.IsNotFound) != nil {
			return "", err
		}
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if r.Kind == "MutatingAdmissionPolicy" {
				return version, nil
			}
		}
	}
	return "", refusal("the cluster has no MutatingAdmissionPolicy")
}

// works waits until the API server heeds the policy: it does so some time after it has
// taken it.
func (c *cluster) works(ctx context.Context) error {
	pod := newLoadPod(c.images[web])
	pod.Labels["lameduck"] = "hold"
	pod.Spec.Containers[0].Lifecycle = &core.Lifecycle{PreStop: &core.LifecycleHandler{Sleep: &core.SleepAction{Seconds: nap}}}
	return c.until(ctx, "the policy", func(ctx context.Context) (bool, error) {
		made, err := c.CoreV1().Pods(c.namespace).Create(ctx, pod, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		return err == nil && len(made.Spec.InitContainers) > 0, err
	})
}
