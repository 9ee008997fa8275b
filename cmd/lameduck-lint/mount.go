package main

import (
	"path"
	"strings"
)

// installedIn returns the paths at which init containers of a pod install lameduck, each with
// the name of the volume.
func installedIn(spec node) map[string]string {
	installed := map[string]string{}
	for _, n := range spec.get("initContainers").list() {
		p := programOf(containerOf(n.at()).words)
		if !p.called("install") || len(p.words) < 3 {
			continue
		}
		file := path.Join(p.words[2].text, "lameduck")
		if volume := volumeAt(n, file); volume != "" {
			installed[file] = volume
		}
	}
	return installed
}

// volumeAt returns the volume that a container mounts at a path or above, or "".
func volumeAt(container node, file string) (volume string) {
	longest := 0
	for _, mount := range container.get("volumeMounts").list() {
		dir := path.Clean(mount.get("mountPath").text())
		if (file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")) && len(dir) > longest {
			volume, longest = mount.get("name").text(), len(dir)
		}
	}
	return volume
}

// reportPaths reports a lameduck in the command or the hook of a container that the container
// does not have.
func (p *pod) reportPaths(c *container, n node, h *hook, hook program) {
	const fails = "the hook fails, and nothing holds"
	c.reportOneWord(h.words, fails)
	if hook.isHook() {
		p.reportMount(c, n, hook.words[0], fails)
	}
	if !c.complete {
		return
	}
	const starts = "the container does not start"
	c.reportOneWord(c.words, starts)
	if c.program.isLameduck() {
		p.reportMount(c, n, c.program.words[0], starts)
	}
}

// reportOneWord reports a command line in one word.
func (c *container) reportOneWord(words []word, outcome string) {
	if len(words) == 0 {
		return
	}
	first, _, isLine := strings.Cut(words[0].text, " ")
	if isLine && path.Base(first) == "lameduck" {
		c.report(words[0].line, noProgram, "no shell splits %q into words, so %s; make each word an item of its own", words[0].text, outcome)
	}
}

// reportMount reports a path at which an init container installs lameduck, in a container
// that mounts nothing there. A patch may leave out the mount.
func (p *pod) reportMount(c *container, n node, program word, outcome string) {
	volume, ok := p.installed[path.Clean(program.text)]
	if ok && c.image != "" && volumeAt(n, path.Clean(program.text)) == "" {
		c.report(program.line, noProgram, "%s is missing: the container does not mount volume %s at %s, so %s; add the volumeMount", program.text, volume, path.Dir(program.text), outcome)
	}
}
