package main

import (
	"path"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// usualPeriod is the default of a probe's periodSeconds.
const usualPeriod = 10

// reportProbes reports probes that conflict with the hold.
func (p *pod) reportProbes(c *container, n node, d *instance) {
	told := d.cfg.GracePeriod
	if told == 0 {
		told = usualGrace * time.Second
	}
	for _, kind := range []string{"livenessProbe", "startupProbe"} {
		own := n.get(kind, "terminationGracePeriodSeconds")
		if seconds, ok := own.number(); ok && time.Duration(seconds)*time.Second < told && !c.moreVariables {
			c.report(own.Line, probeGrace, "when the %s fails, KILL comes after %d s, but lameduck's grace period is %s: KILL may come during the hold; give %v or more, leave the field out, or silence this rule if quick restarts are intended",
				kind, seconds, short(told), told.Seconds())
		}
	}
	probe := n.get("readinessProbe")
	port := portOf(probe, portsOf(n))
	if port == 0 || p.ports[port] > 0 && !slices.Contains(values(portsOf(n)), port) {
		return // no connection, or a connection to another container
	}
	if h := d.cfg.Health; h != nil && int(h.Listen.Port()) == port {
		if d.cfg.HealthDuring != shim.HealthPass {
			c.report(d.given["health-during"].line, readinessFails, "the readiness probe uses lameduck's --health port, which fails from the stop signal on: if all endpoints are terminating, traffic finds no endpoint; give --health-during=pass")
		}
		return
	}
	if !c.moreVariables && !p.knative && !probe.get("tcpSocket").exists() && d.countsProbes(uint16(port)) {
		c.reportPeriod(probe, d)
	}
}

// countsProbes reports whether probes of a port may count as traffic. A probe that sends
// nothing never counts.
func (d *instance) countsProbes(port uint16) bool {
	cfg := &d.cfg
	return len(cfg.IgnorePeers) == 0 && !slices.Contains(cfg.IgnorePorts, port) &&
		(len(cfg.CountPorts) == 0 || slices.Contains(cfg.CountPorts, port))
}

// reportPeriod reports a readiness probe that leaves no silence of the length that d waits for,
// and is not left out before the ceiling. At a period equal to the silence no silence is long
// enough.
func (c *container) reportPeriod(probe node, d *instance) {
	line := probe.get("periodSeconds").line(probe.Line)
	seconds, ok := probe.get("periodSeconds").number()
	if !ok {
		seconds = usualPeriod
	}
	period := time.Duration(seconds) * time.Second
	switch learned := max(2*d.silence, 3*period); {
	case period > d.silence:
	case d.cfg.Probes == shim.CountProbes:
		c.report(line, probeHolds, "a readiness probe every %d s ends each silence before the %s that the hold needs, so the hold lasts to its ceiling, %s; leave out --no-ignore-probes, probe less often, or give --ignore-port, or --health for the probe",
			seconds, short(d.silence), short(d.longest))
	case d.cfg.Probes == shim.IgnoreProbesPatiently && learned >= d.longest:
		c.report(line, probeHolds, "a readiness probe every %d s ends each silence before the %s that the hold needs, and is left out after %s or more, so the hold lasts to its ceiling, %s; give a --quiet-for shorter than the period, --ignore-probes, --ignore-port, or --health for the probe",
			seconds, short(d.silence), short(learned), short(d.longest))
	}
}

// portOf returns the port that a probe connects to, or 0.
func portOf(probe node, names map[string]int) int {
	for _, kind := range []string{"httpGet", "tcpSocket", "grpc"} {
		if port := probe.get(kind, "port"); port.exists() && !probe.get(kind, "host").exists() {
			if number, ok := port.number(); ok {
				return number
			}
			return names[port.text()]
		}
	}
	return 0
}

func values(m map[string]int) (list []int) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// reportUnready reports commands at the stop that remove or create a file that the readiness probe
// looks at: the pod becomes unready.
func (p *pod) reportUnready(c *container, n node, d *instance, preStop []word) {
	var looked []string
	var probe []word
	for _, w := range n.get("readinessProbe", "exec", "command").list() {
		probe = append(probe, word{w.text(), 0})
	}
	for _, call := range commands(probe) {
		for _, w := range call {
			if path.IsAbs(w.text) {
				looked = append(looked, w.text)
			}
		}
	}
	var onStop []word
	for _, text := range d.cfg.OnStop {
		onStop = append(onStop, word{text, d.given["on-stop"].line})
	}
	for what, words := range map[string][]word{"preStop": preStop, "--on-stop": onStop} {
		for _, call := range commands(words) {
			if tool := path.Base(call[0].text); tool != "rm" && tool != "touch" && tool != "unlink" {
				continue
			}
			for _, w := range call[1:] {
				if slices.Contains(looked, w.text) {
					c.report(w.line, readinessFails, "%s changes %s, which the readiness probe reads: the pod becomes unready while it still serves, and if all endpoints are terminating, traffic finds no endpoint; remove the command", what, w.text)
				}
			}
		}
	}
}
