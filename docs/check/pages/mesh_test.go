package pages

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
)

// meshAnnotations are the annotations of Istio and Linkerd on the pages.
var meshAnnotations = []string{
	"sidecar.istio.io/nativeSidecar", istioConfig,
	"linkerd.io/inject", "config.linkerd.io/proxy-enable-native-sidecar", linkerdWait,
}

const (
	istioConfig = "proxy.istio.io/config"
	linkerdWait = "config.alpha.linkerd.io/proxy-wait-before-exit-seconds"
)

// proxyConfig is the part of Istio's ProxyConfig that the pages use. The durations in
// Metadata are variables of Istio's agent.
type proxyConfig struct {
	Metadata struct {
		ExitOnZero   string `json:"EXIT_ON_ZERO_ACTIVE_CONNECTIONS"`
		MinimumDrain string `json:"MINIMUM_DRAIN_DURATION"`
	} `json:"proxyMetadata"`
	TerminationDrain string `json:"terminationDrainDuration"`
}

// mesh checks the annotations of a pod for a mesh: names, values, and that a proxy that
// waits outlasts the hold, within the grace period.
func mesh(t *testing.T, pod core.PodTemplateSpec) {
	t.Helper()
	seconds := pod.Spec.TerminationGracePeriodSeconds
	if len(pod.Annotations) == 0 || seconds == nil {
		return
	}
	for name := range pod.Annotations {
		if !slices.Contains(meshAnnotations, name) {
			t.Errorf("no rule for the annotation %s", name)
		}
	}
	grace := time.Duration(*seconds) * time.Second
	if text := pod.Annotations[istioConfig]; text != "" {
		config := strict[proxyConfig](t, []byte(text))
		outlasts(t, config.Metadata.MinimumDrain, longest(t, pod.Spec, "--delay"), grace)
	}
	if text := pod.Annotations[linkerdWait]; text != "" {
		outlasts(t, text+"s", longest(t, pod.Spec, "--max-delay"), grace)
	}
}

// longest returns the longest duration that a flag of lameduck has in a pod.
func longest(t *testing.T, spec core.PodSpec, flag string) (found time.Duration) {
	t.Helper()
	for _, c := range spec.Containers {
		m := regexp.MustCompile(flag + `=(\d+)`).FindStringSubmatch(strings.Join(c.Command, " "))
		if m == nil {
			t.Fatalf("no %s in %q", flag, c.Command)
		}
		n, _ := strconv.Atoi(m[1])
		found = max(found, time.Duration(n)*time.Second)
	}
	return found
}

// outlasts reports an error where a proxy waits for a shorter time than the hold, or for
// the grace period.
func outlasts(t *testing.T, text string, hold, grace time.Duration) {
	t.Helper()
	wait, err := time.ParseDuration(text)
	if err != nil {
		t.Error(err)
	}
	if wait < hold || wait >= grace {
		t.Errorf("a proxy waits for %v, with a hold of %v in a grace period of %v", wait, hold, grace)
	}
}
