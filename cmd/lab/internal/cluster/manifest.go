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

// rival turns install.yaml into a usual Deployment without lameduck. change changes the
// server's container.
func rival(change func(*core.Container)) func() ([]runtime.Object, error) {
	return func() ([]runtime.Object, error) {
		list, err := given("install.yaml")()
		if err != nil {
			return nil, err
		}
		for _, object := range list {
			d, ok := object.(*apps.Deployment)
			if !ok {
				continue
			}
			spec := &d.Spec.Template.Spec
			spec.InitContainers = nil
			spec.Containers[0].Command, spec.Containers[0].Args = nil, nil
			change(&spec.Containers[0])
		}
		return list, nil
	}
}

// atOnce makes a server that TERM kills.
func atOnce(c *core.Container) { c.Image = web }

// own makes a server that the image's STOPSIGNAL stops gracefully.
func own(*core.Container) {}

// sleep makes a server that TERM kills after a nap.
func sleep(c *core.Container) {
	c.Image = web
	if _, ok := tiniPath(); ok {
		c.Command = []string{"/tini", "--", "/web"}
	}
	c.Lifecycle = &core.Lifecycle{PreStop: &core.LifecycleHandler{Sleep: &core.SleepAction{Seconds: nap}}}
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
	return strings.ReplaceAll(text, "'lameduck:1'", "'"+c.images["lameduck:1"]+"'")
}
