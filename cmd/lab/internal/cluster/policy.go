package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	core "k8s.io/api/core/v1"
	api "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/lameduck-init/lameduck/cmd/lab/manifest"
)

// group is the API group of the policies.
const group = "admissionregistration.k8s.io"

// plurals are the resources of fleet/policy.yaml, in the order of the file.
var plurals = []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}

// policies returns the client for plurals[i].
func (c *cluster) policies(version string, i int) dynamic.ResourceInterface {
	return c.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plurals[i]})
}

// beginPolicy lets fleet/policy.yaml change the pods of the experiment's namespace, and of
// no other. The policy, which belongs to no namespace, is named after the namespace.
func (c *cluster) beginPolicy(ctx context.Context) error {
	version, err := c.policyVersion()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(examples + "fleet/policy.yaml")
	if err != nil {
		return err
	}
	for i, part := range manifest.Parts([]byte(c.policyText(string(text)))) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(part, &object.Object); err != nil {
			return err
		}
		object.SetAPIVersion(group + "/" + version)
		object.SetName(c.namespace)
		spec := object.Object["spec"].(map[string]any)
		if i == 0 {
			spec["matchConstraints"].(map[string]any)["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{core.LabelMetadataName: c.namespace}}
		} else {
			spec["policyName"] = c.namespace
		}
		_, err := c.policies(version, i).Create(ctx, object, meta.CreateOptions{})
		if api.IsForbidden(err) {
			return refusal(err.Error())
		}
		if err != nil {
			return fmt.Errorf("cannot make the policy: %w", err)
		}
	}
	return c.works(ctx)
}

// endPolicy deletes the policy where there is one.
func (c *cluster) endPolicy(ctx context.Context) error {
	version, err := c.policyVersion()
	if no := refusal(""); errors.As(err, &no) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range plurals {
		err := c.policies(version, i).Delete(ctx, c.namespace, meta.DeleteOptions{})
		if err != nil && !api.IsNotFound(err) && !api.IsForbidden(err) {
			return fmt.Errorf("cannot delete the policy: %w", err)
		}
	}
	return nil
}

// policyVersion returns the newest version of the API group that the cluster serves.
func (c *cluster) policyVersion() (string, error) {
	for _, version := range []string{"v1", "v1beta1"} {
		list, err := c.Discovery().ServerResourcesForGroupVersion(group + "/" + version)
		if ignore(err, api.IsNotFound) != nil {
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

// works waits until the API server applies the policy, some time after its creation.
func (c *cluster) works(ctx context.Context) error {
	pod := newLoadPod(c.images[web])
	pod.Labels["lameduck"] = "hold"
	pod.Spec.Containers[0].Lifecycle = &core.Lifecycle{PreStop: &core.LifecycleHandler{Sleep: &core.SleepAction{Seconds: nap}}}
	return c.until(ctx, "the policy", func(ctx context.Context) (bool, error) {
		made, err := c.CoreV1().Pods(c.namespace).Create(ctx, pod, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		return err == nil && len(made.Spec.InitContainers) > 0, err
	})
}
