package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lameduck-init/lameduck/cmd/lab/manifest"
)

// tiniPath returns the path of Debian's static tini.
func tiniPath() (path string, ok bool) {
	path, err := exec.LookPath("tini-static")
	return path, err == nil
}

// given returns a manifest of the examples as written.
func given(name string) func() ([]runtime.Object, error) {
	return func() ([]runtime.Object, error) {
		text, err := os.ReadFile(examples + name)
		if err != nil {
			return nil, err
		}
		return manifest.Objects(text)
	}
}

// built returns what kustomize makes of a folder of the examples.
func built(folder string) func() ([]runtime.Object, error) {
	return func() ([]runtime.Object, error) {
		text, err := manifest.Build(examples + folder)
		if err != nil {
			return nil, err
		}
		return manifest.Objects(text)
	}
}

// nap is the usual sleep in a preStop hook, in seconds.
const nap = 5

// The programs in the image web: a server that TERM kills, and a server that TERM stops
// gracefully.
const (
	dies     = "/web"
	finishes = "/shop"
)

// rival turns install.yaml into a usual Deployment without lameduck: the program under
// tini, if installed, with a preStop hook that sleeps for so many seconds.
func rival(program string, sleep int64) func() ([]runtime.Object, error) {
	return altered(func(spec *core.PodSpec) {
		spec.InitContainers = nil
		c := &spec.Containers[0]
		c.Command = []string{program}
		if _, ok := tiniPath(); ok {
			c.Command = []string{"/tini", "--", program}
		}
		if sleep > 0 {
			c.Lifecycle = &core.Lifecycle{PreStop: &core.LifecycleHandler{Sleep: &core.SleepAction{Seconds: sleep}}}
		}
	})
}

// under turns install.yaml into a Deployment of the program under lameduck with a flag
// that asks for a hold.
func under(flag, program string) func() ([]runtime.Object, error) {
	return altered(func(spec *core.PodSpec) {
		c := &spec.Containers[0]
		c.Command = []string{c.Command[0], flag, "--", program}
	})
}

// replicas is the number of pods of the Deployments that no manifest has.
const replicas = 3

// altered returns install.yaml with more replicas, the image web and a change to the pod.
func altered(change func(*core.PodSpec)) func() ([]runtime.Object, error) {
	return func() ([]runtime.Object, error) {
		list, err := given("install.yaml")()
		if err != nil {
			return nil, err
		}
		for _, object := range list {
			if d, ok := object.(*apps.Deployment); ok {
				d.Spec.Replicas = new(int32(replicas))
				spec := &d.Spec.Template.Spec
				spec.Containers[0].Image, spec.Containers[0].Args = web, nil
				change(spec)
			}
		}
		return list, nil
	}
}

// renamed replaces the images in a pod by the cluster's names.
func (c *cluster) renamed(spec *core.PodSpec) error {
	rename := func(image *string) error {
		name, ok := c.images[*image]
		if !ok {
			return fmt.Errorf("no image %s was built", *image)
		}
		*image = name
		return nil
	}
	for _, list := range [][]core.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if err := rename(&list[i].Image); err != nil {
				return err
			}
		}
	}
	for _, v := range spec.Volumes {
		if v.Image != nil {
			if err := rename(&v.Image.Reference); err != nil {
				return err
			}
		}
	}
	return nil
}

// policyText replaces lameduck's image in a policy by the cluster's name.
func (c *cluster) policyText(text string) string {
	return strings.ReplaceAll(text, "'"+release+"'", "'"+c.images[release]+"'")
}
