package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lameduck-init/lameduck/testdata/k8s/manifest"
)

// tiniPath is where Debian's package has a tini that runs from scratch.
func tiniPath() (path string, ok bool) {
	path, err := exec.LookPath("tini-static")
	return path, err == nil
}

// given is a manifest as it is.
func given(path string) func() ([]runtime.Object, error) {
	return func() ([]runtime.Object, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return manifest.Objects(text)
	}
}

// built is what kustomize makes of a folder.
func built(dir string) func() ([]runtime.Object, error) {
	return func() ([]runtime.Object, error) {
		text, err := manifest.Build(dir)
		if err != nil {
			return nil, err
		}
		return manifest.Objects(text)
	}
}

// nap is what people write into a preStop hook.
const nap = 5

// rival makes of install.yaml what people have without lameduck: the same pods but for
// what is changed.
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

// atOnce is a server that TERM kills.
func atOnce(c *core.Container) { c.Image = web }

// own is one that its image's STOPSIGNAL stops gracefully.
func own(*core.Container) {}

// sleep is one that TERM kills a while later.
func sleep(c *core.Container) {
	c.Image = web
	if _, ok := tiniPath(); ok {
		c.Command = []string{"/tini", "--", "/web"}
	}
	c.Lifecycle = &core.Lifecycle{PreStop: &core.LifecycleHandler{Sleep: &core.SleepAction{Seconds: nap}}}
}

// renamed gives the pods the names that the cluster has the images by.
func (c *cluster) renamed(spec *core.PodSpec) error {
	rename := func(image *string) error {
		name, ok := c.images[*image]
		if !ok {
			return fmt.Errorf("there is no image %s", *image)
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

// policyText gives lameduck's image its name in a policy.
func (c *cluster) policyText(text string) string {
	return strings.ReplaceAll(text, "'lameduck:1'", "'"+c.images["lameduck:1"]+"'")
}
