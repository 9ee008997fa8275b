package main

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// pod has the properties of a pod that concern all of the pod's containers.
type pod struct {
	grace      int    // seconds
	graceField string // the field with the grace period
	graceLine  int    // 0: the default applies
	patch      bool   // the grace period may stand elsewhere
	shared     bool
	job        bool
	knative    bool
	ports      map[int]int       // how many containers declare each port
	installed  map[string]string // the volume at each path at which lameduck is installed
}

// usualGrace is the default grace period of Kubernetes in seconds, which lameduck assumes.
const usualGrace = 30

// newPod returns what is known about the pods of an object before the grace period and the
// containers are read. Knative makes timeoutSeconds the grace period; the default is the
// cluster's.
func newPod(spec, object node) pod {
	kind, restart := object.get("kind").text(), spec.get("restartPolicy").text()
	p := pod{grace: usualGrace, graceField: "terminationGracePeriodSeconds", ports: map[int]int{}}
	p.job = kind == "Job" || kind == "CronJob" || restart == "Never" || restart == "OnFailure"
	p.knative = strings.HasPrefix(object.get("apiVersion").text(), "serving.knative.dev/")
	if p.knative {
		p.graceField = "timeoutSeconds"
		p.patch = !spec.get(p.graceField).exists()
	}
	p.installed = installedIn(spec)
	p.shared = spec.get("shareProcessNamespace").text() == "true" || spec.get("hostPID").text() == "true"
	return p
}

// lintPod returns the findings for the specification of the pods of an object.
func lintPod(spec, object node) (found []finding) {
	p := newPod(spec, object)
	if given := spec.get(p.graceField); given.exists() {
		seconds, ok := given.number()
		if !ok {
			return nil // the API server refuses the pod
		}
		p.grace, p.graceLine = seconds, given.Line
	}
	containers := spec.get("containers").list()
	for _, c := range spec.get("initContainers").list() {
		if c.get("restartPolicy").text() == "Always" {
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		p.patch = p.patch || p.graceLine == 0 && !c.get("image").exists()
		for _, port := range portsOf(c) {
			p.ports[port]++
		}
	}
	for _, c := range containers {
		found = append(found, p.lint(c)...)
	}
	return found
}

// portsOf returns the ports that a container declares, by name and by number.
func portsOf(c node) map[string]int {
	ports := map[string]int{}
	for _, port := range c.get("ports").list() {
		number, ok := port.get("containerPort").number()
		if ok {
			ports[port.get("containerPort").text()] = number
			ports[port.get("name").text()] = number
		}
	}
	delete(ports, "")
	return ports
}

// lint returns the findings for a container of the pod.
func (p *pod) lint(n node) []finding {
	n = n.at()
	c := containerOf(n)
	h := hookOf(n)
	for i, w := range h.words {
		h.words[i].text = expand(w.text, c.env)
	}
	hook := h.program()
	c.findEntry(hook.isHook() || mentions(h.words))
	if c.entry != nil && c.entry.complete && c.entry.starts {
		if len(c.entry.command) == 0 {
			c.report(c.entry.line, noCommand, "lameduck does not start: no command to run; add the image's own command, which the pod's command replaces")
		}
		if !c.moreVariables {
			c.reportUnusedFlags(c.entry)
		}
	}
	c.reportCommand()
	c.reportPrefixes()
	p.reportPaths(c, n, &h, hook)
	c.reportShells(p.job)
	c.reportUnusedVariables(h.words)
	if s := n.get("lifecycle", "stopSignal"); s.exists() {
		c.reportStopSignal("stopSignal", s.text(), s.Line)
	}
	holds := c.entry
	if hook.isHook() {
		h.instance = c.newInstance(true, hook.words[0].line, hook.words[2:])
		p.reportHook(c, &h)
		if holds == nil || !holds.cfg.Holds() {
			holds = h.instance
		}
	}
	p.reportSleep(c, &h)
	p.reportKnative(c)
	sidecar := n.get("restartPolicy").text() == "Always"
	if c.entry != nil {
		p.reportGrace(c, c.entry, h.sleep, sidecar || h.busy || p.knative)
	}
	if h.instance != nil {
		p.reportGrace(c, h.instance, h.sleep, sidecar)
	}
	if holds != nil && holds.starts && holds.cfg.Holds() {
		p.reportProbes(c, n, holds)
		p.reportUnready(c, n, holds, h.words)
	}
	return c.found
}

// containerOf reads a container.
func containerOf(n node) *container {
	c := &container{line: n.Line, image: n.get("image").text(), complete: n.get("command").exists()}
	c.moreVariables = c.image == "" // a patch
	for _, e := range n.get("env").list() {
		value := e.get("value")
		v := variable{e.get("name").text(), word{value.text(), value.line(e.at().line(n.Line))}}
		if e.get("valueFrom").exists() {
			v.value.text = "$(valueFrom)"
		}
		v.value.text = expand(v.value.text, c.env)
		c.env = append(c.env, v)
	}
	for _, from := range n.get("envFrom").list() {
		c.moreVariables = c.moreVariables || from.get("configMapRef").exists()
	}
	for _, w := range append(n.get("command").list(), n.get("args").list()...) {
		c.words = append(c.words, word{expand(w.text(), c.env), w.at().line(n.Line)})
	}
	return c
}

var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)`)

// expand replaces $(NAME) in text by the value of the variable, if known.
func expand(text string, env []variable) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		name := reference.FindStringSubmatch(ref)[1]
		if i := slices.IndexFunc(env, func(v variable) bool { return v.name == name }); i >= 0 {
			return env[i].value.text
		}
		return ref
	})
}

// hook is a container's preStop hook.
type hook struct {
	line     int
	words    []word // the command
	sleep    time.Duration
	busy     bool      // the hook takes an unknown time
	instance *instance // the lameduck hold in words
}

// hookOf reads a container's preStop hook.
func hookOf(n node) (h hook) {
	stop := n.get("lifecycle", "preStop")
	h.line = stop.line(0)
	for _, w := range stop.get("exec", "command").list() {
		h.words = append(h.words, word{w.text(), w.at().line(h.line)})
	}
	if seconds := stop.get("sleep", "seconds"); seconds.exists() {
		n, _ := seconds.number()
		h.sleep, h.line = time.Duration(n)*time.Second, seconds.Line
		return h
	}
	h.sleep = sleeps(h.words)
	if h.sleep > 0 {
		h.line = h.words[len(h.words)-1].line
	}
	h.busy = stop.get("httpGet").exists() || len(h.words) > 0 && len(commands(h.words)) != 1 || len(h.words) > 0 && h.sleep == 0
	return h
}

// program returns the hook's lameduck hold, or else the hook's program.
func (h *hook) program() program {
	for _, call := range commands(h.words) {
		if p := programOf(call); p.isHook() {
			return p
		}
	}
	return programOf(h.words)
}
