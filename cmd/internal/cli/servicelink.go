package cli

import (
	"slices"
	"strings"
)

// serviceLinks are the Services of a namespace whose variables begin with Prefix, by their
// names in variables: LAMEDUCK_WEB for lameduck-web. The kubelet makes the variables of every
// Service with a cluster IP for every container, unless the pod's enableServiceLinks is
// false; see FromServices in Kubernetes' pkg/kubelet/envvars. For NAME, port 80 (called
// http) and TCP the variables are
//
//	NAME_SERVICE_HOST=10.0.0.1
//	NAME_SERVICE_PORT=80
//	NAME_SERVICE_PORT_HTTP=80
//	NAME_PORT=tcp://10.0.0.1:80
//	NAME_PORT_80_TCP=tcp://10.0.0.1:80
//	NAME_PORT_80_TCP_PROTO=tcp
//	NAME_PORT_80_TCP_PORT=80
//	NAME_PORT_80_TCP_ADDR=10.0.0.1
type serviceLinks []string

const serviceHost = "_SERVICE_HOST"

// serviceLinksIn returns the Services that have left a NAME_SERVICE_HOST in an environment.
func serviceLinksIn(env []string) (services serviceLinks) {
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		service, found := strings.CutSuffix(name, serviceHost)
		if found && strings.HasPrefix(service, Prefix) {
			services = append(services, service)
		}
	}
	return services
}

// isAddress reports whether a value is that of NAME_PORT or NAME_PORT_80_TCP. No flag takes
// such a value.
func isAddress(value string) bool {
	for _, protocol := range []string{"tcp", "udp", "sctp"} {
		if strings.HasPrefix(value, protocol+"://") {
			return true
		}
	}
	return false
}

// made reports whether the kubelet made a variable with a name that no flag has.
func (services serviceLinks) made(name string) bool {
	return slices.ContainsFunc(services, func(service string) bool {
		rest, found := strings.CutPrefix(name, service+"_")
		return found && isLinkSuffix(rest)
	})
}

// isLinkSuffix reports whether the kubelet makes variables whose names end with rest after
// the Service's name.
func isLinkSuffix(rest string) bool {
	switch {
	case rest == "SERVICE_HOST", rest == "SERVICE_PORT", rest == "PORT":
		return true
	case strings.HasPrefix(rest, "SERVICE_PORT_"):
		return true
	}
	numbered, found := strings.CutPrefix(rest, "PORT_")
	if !found {
		return false
	}
	parts := strings.Split(numbered, "_")
	if len(parts) < 2 || len(parts) > 3 || strings.Trim(parts[0], "0123456789") != "" {
		return false
	}
	isProtocol := slices.Contains([]string{"TCP", "UDP", "SCTP"}, parts[1])
	return isProtocol && (len(parts) == 2 || slices.Contains([]string{"PROTO", "PORT", "ADDR"}, parts[2]))
}
