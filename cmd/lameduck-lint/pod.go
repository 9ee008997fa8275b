package main

import (
	"path"
	"slices"
	"strings"
)

// pod has the properties of a pod that concern all of the pod's containers.
type pod struct {
	spec      node
	grace     int  // seconds
	graceLine int  // 0: the default applies
	patch     bool // the grace period may stand elsewhere
}

// usualGrace is the default grace period of Kubernetes in seconds, which lameduck assumes.
const usualGrace = 30

// lintPod returns the findings for the specification of the pods of an object.
func lintPod(spec, object node) (found []finding) {
	p := pod{spec: spec, grace: usualGrace}
	// Knative makes timeoutSeconds the grace period; the default is the cluster's.
	p.patch = strings.HasPrefix(object.get("apiVersion").text(), "serving.knative.dev/")
	if given := spec.get("terminationGracePeriodSeconds"); given.exists() {
		seconds, ok := given.number()
		if !ok {
			return nil // the API server refuses the pod
		}
		p.grace, p.graceLine = seconds, given.Line
	}
	containers := spec.get("containers").list()
	for _, n := range spec.get("initContainers").list() {
		if n.get("restartPolicy").text() == "Always" {
			containers = append(containers, n)
		}
	}
	for _, n := range containers {
		p.patch = p.patch || p.graceLine == 0 && !n.get("image").exists()
	}
	for _, n := range containers {
		found = append(found, p.lint(n.at())...)
	}
	return found
}

// The outcomes of a lameduck that is missing.
const (
	hookFails    = "the hook fails, and nothing holds"
	doesNotStart = "the container does not start"
)

// lint returns the findings for a container of the pod.
func (p *pod) lint(n node) []finding {
	c := containerOf(n)
	h := hookOf(n)
	c.findEntry(h.call != nil)
	c.reportOneWord(c.words, doesNotStart)
	c.reportNoCommand("the pod's command replaces that of the image: add that one")
	c.reportCommand()
	p.readHook(c, &h)
	if found := callIn(c.words); found != nil && c.complete {
		p.reportMissing(c, n, found.program, doesNotStart)
	}
	if h.call != nil {
		p.reportMissing(c, n, h.call.program, hookFails)
	}
	if s := n.get("lifecycle", "stopSignal"); s.exists() {
		c.reportStopSignal("stopSignal", s.text(), s.Line)
	}
	p.reportSleep(c, &h)
	sidecar := n.get("restartPolicy").text() == "Always"
	p.reportGrace(c, c.entry, h.sleep, sidecar || h.busy)
	p.reportGrace(c, h.hold, h.sleep, sidecar)
	return c.found
}

// containerOf reads a container.
func containerOf(n node) *container {
	c := &container{line: n.Line, image: n.get("image").text(), complete: n.get("command").exists()}
	c.more = c.image == "" // a patch
	for _, e := range n.get("env").list() {
		value := e.get("value")
		v := variable{e.get("name").text(), word{value.text(), value.line(e.at().line(n.Line))}}
		if e.get("valueFrom").exists() {
			v.value.text = "$(valueFrom)"
		}
		c.env = append(c.env, v)
	}
	for _, from := range n.get("envFrom").list() {
		c.more = c.more || from.get("configMapRef").exists() || from.get("secretRef").exists()
	}
	for _, w := range append(n.get("command").list(), n.get("args").list()...) {
		c.words = append(c.words, word{w.text(), w.at().line(n.Line)})
	}
	return c
}

// reportMissing reports a lameduck at a path to which nothing brings one: a volume that the
// container does not mount, an empty volume that nothing fills, or a library image. An image
// of another repository may have a lameduck at any path.
func (p *pod) reportMissing(c *container, n node, program word, outcome string) {
	file := path.Clean(program.text)
	if c.image == "" || !path.IsAbs(file) || !known(program.text) {
		return
	}
	volume := mountAt(n, file)
	if volume == "" && (p.installs(file) || isLibrary(c.image)) || volume != "" && p.isEmpty(n, volume) {
		c.report(program.line, noProgram,
			"%s is missing: no init container or volume brings it to this container, so %s; mount the volume that "+
				"has it (see docs/install.md)", program.text, outcome)
	}
}

// isLibrary reports whether an image is one of Docker's library, none of which has a lameduck.
func isLibrary(image string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(image, "docker.io/library/"), ":")
	return slices.Contains(strings.Fields("caddy haproxy httpd memcached mongo mysql mariadb nginx node php "+
		"postgres python rabbitmq redis ruby tomcat traefik varnish"), name)
}

// installs reports whether an init container installs lameduck at a path.
func (p *pod) installs(file string) bool {
	return slices.ContainsFunc(p.spec.get("initContainers").list(), func(n node) bool {
		found := callIn(containerOf(n.at()).words)
		if found == nil || found.subcommand != "install" || len(found.args) == 0 {
			return false
		}
		return path.Join(found.args[0].text, "lameduck") == file && mountAt(n, file) != ""
	})
}

// isEmpty reports whether a volume is an emptyDir that no other container of the pod mounts.
func (p *pod) isEmpty(container node, volume string) bool {
	empty := false
	for _, v := range p.spec.get("volumes").list() {
		empty = empty || v.get("name").text() == volume && v.at().field("emptyDir").Node != nil
	}
	for _, n := range append(p.spec.get("initContainers").list(), p.spec.get("containers").list()...) {
		for _, mount := range n.get("volumeMounts").list() {
			empty = empty && (n.at().Node == container.Node || mount.get("name").text() != volume)
		}
	}
	return empty
}

// mountAt returns the volume that a container mounts at a path or above, or "".
func mountAt(container node, file string) (volume string) {
	longest := 0
	for _, mount := range container.get("volumeMounts").list() {
		dir := path.Clean(mount.get("mountPath").text())
		if (file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")) && len(dir) > longest {
			volume, longest = mount.get("name").text(), len(dir)
		}
	}
	return volume
}
