package cli

import (
	"slices"
	"strings"
	"testing"
)

// linksOf returns the variables that the kubelet makes for a Service with the ports 80
// (http) and 53/UDP, by the Service's name in variables.
func linksOf(name string) (env []string) {
	for _, entry := range []string{
		"_SERVICE_HOST=10.0.0.1", "_SERVICE_PORT=80", "_SERVICE_PORT_HTTP=80", "_SERVICE_PORT_MY_DNS=53",
		"_PORT=tcp://10.0.0.1:80",
		"_PORT_80_TCP=tcp://10.0.0.1:80", "_PORT_80_TCP_PROTO=tcp", "_PORT_80_TCP_PORT=80", "_PORT_80_TCP_ADDR=10.0.0.1",
		"_PORT_53_UDP=udp://[fd00::1]:53", "_PORT_53_UDP_PROTO=udp", "_PORT_53_UDP_PORT=53", "_PORT_53_UDP_ADDR=fd00::1",
	} {
		env = append(env, name+entry)
	}
	return env
}

// TestServiceLinks: the variables of a Service, even a variable with the name of a flag's
// variable, are no warning and no value, and the command gets all variables.
func TestServiceLinks(t *testing.T) {
	for _, service := range []string{"LAMEDUCK", "LAMEDUCK_WEB", "LAMEDUCK_COUNT", "LAMEDUCK_IGNORE", "LAMEDUCK_DELAY", "LAMEDUCK_UNTIL_V2", "LAMEDUCK_SERVICE_HOST", "LAMEDUCKS"} {
		env := linksOf(service)
		for _, order := range [][]string{env, reversed(env)} {
			got, err := configOf("-u quiet x", strings.Join(order, " "))
			if err != nil || len(got.Warnings) > 0 || len(got.CountPorts)+len(got.IgnorePorts) > 0 || !slices.Equal(got.Env, order) {
				t.Errorf("%s: %v, warnings %q, ports %v %v, the command gets %q", service, err, got.Warnings, got.CountPorts, got.IgnorePorts, got.Env)
			}
		}
	}
}

// TestServiceLinksAside: beside the variables of a Service the user's own variables count,
// and mistyped variables are a warning.
func TestServiceLinksAside(t *testing.T) {
	env := strings.Join(linksOf("LAMEDUCK_COUNT")[:3], " ")
	got, err := configOf("-u quiet x", env+" LAMEDUCK_COUNT_PORT=8080") // the pod's own wins over the kubelet's
	if err != nil || len(got.Warnings) > 0 || !slices.Equal(got.CountPorts, []uint16{8080}) {
		t.Errorf("LAMEDUCK_COUNT_PORT=8080: %v, warnings %q, ports %v", err, got.Warnings, got.CountPorts)
	}
	for _, entry := range []string{"LAMEDUCK_COUNT_PORTS=80", "LAMEDUCK_COUNT_PORT_80=x", "LAMEDUCK_COUNT_PORT_X_TCP=x", "LAMEDUCK_COUNT_PORT_80_TCP_X=x", "LAMEDUCK_COUNT_PORT_80_TLS=x", "LAMEDUCK_COUNT_SERVICE=x", "LAMEDUCK_WEB_SERVICE_PORT=80"} {
		if got, err := configOf("-u quiet x", env+" "+entry); err != nil || len(got.Warnings) != 1 {
			t.Errorf("%s: %v, warnings %q", entry, err, got.Warnings)
		}
	}
	if got, err := configOf("-u quiet x", "LAMEDUCK_WEB_PORT=tcp://10.0.0.1:80"); err != nil || len(got.Warnings) > 0 {
		t.Errorf("an address alone: %v, warnings %q", err, got.Warnings)
	}
}

func reversed(list []string) []string {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}
