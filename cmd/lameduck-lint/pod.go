package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// pod is the specification of a pod.
type pod struct {
	Grace          word `yaml:"terminationGracePeriodSeconds"`
	Containers     []container
	InitContainers []container `yaml:"initContainers"`
	Volumes        []volume
	Security       security `yaml:"securityContext"`

	grace time.Duration
	patch bool // the grace period may stand elsewhere
}

// security is what a pod or a container may do.
type security struct {
	Seccomp      struct{ Type string } `yaml:"seccompProfile"`
	Capabilities struct{ Add any }
}

// volume is a volume of a pod, or its place in a container.
type volume struct {
	Name      string
	EmptyDir  any `yaml:"emptyDir"`
	Image     any
	MountPath string `yaml:"mountPath"`
	SubPath   string `yaml:"subPath"`
}

// lint returns the findings for the containers of the pod.
func (p *pod) lint() (found []finding) {
	grace, err := shim.ParseDuration(cmp.Or(p.Grace.text, "30")) // the default, which lameduck assumes too
	if err != nil {
		return nil // the API server refuses the pod
	}
	p.grace = grace
	all := slices.Concat(p.Containers, p.InitContainers)
	for _, c := range all {
		p.patch = p.patch || p.Grace.line == 0 && c.Image == ""
	}
	for i, c := range all {
		if i < len(p.Containers) || c.RestartPolicy == "Always" {
			c.pod = p
			found = append(found, c.lint()...)
		}
	}
	return found
}

// isEmpty reports whether a volume is an emptyDir that no more than one container of the pod
// mounts, and so nothing fills.
func (p *pod) isEmpty(name string) bool {
	mounts := 0
	for _, c := range slices.Concat(p.InitContainers, p.Containers) {
		for _, m := range c.VolumeMounts {
			if m.Name == name {
				mounts++
			}
		}
	}
	isEmptyDir := func(v volume) bool { return v.Name == name && v.EmptyDir != nil }
	return mounts == 1 && slices.ContainsFunc(p.Volumes, isEmptyDir)
}
