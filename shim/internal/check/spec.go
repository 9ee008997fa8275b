// Package check describes health checks: where they arrive and are relayed to, and how they are
// treated. Package health answers them.
//
// The package is pure.
package check

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Spec says where checks arrive and where they are relayed to: LISTEN[=TARGET].
type Spec struct {
	Listen netip.AddrPort // without an address: all addresses
	Target netip.AddrPort // without an address: loopback; with port 0: no target
}

// Parse parses LISTEN[=TARGET]. Each part is :PORT, IPV4:PORT or [IPV6]:PORT. The
// target :PORT is on loopback.
func Parse(text string) (*Spec, error) {
	s := &Spec{}
	listen, target, hasTarget := strings.Cut(text, "=")
	err := parseAddress(&s.Listen, "listen address", listen)
	if err == nil && hasTarget {
		err = parseAddress(&s.Target, "target", target)
	}
	switch {
	case err != nil:
	case s.Target.Addr().IsUnspecified():
		err = fmt.Errorf("invalid target %q: all addresses; give :%d for the port on loopback", target, s.Target.Port())
	case s.loops():
		err = fmt.Errorf("invalid target %q: the listener itself; "+
			"give LISTEN a port of its own, and the command's port after the =", target)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// parseAddress parses one part of a Spec.
func parseAddress(a *netip.AddrPort, part, text string) error {
	port, portAlone := strings.CutPrefix(text, ":")
	full := text
	if portAlone {
		full = "0.0.0.0:" + port
	}
	parsed, err := netip.ParseAddrPort(full)
	if err != nil || parsed.Port() == 0 || parsed.Addr().Zone() != "" {
		return fmt.Errorf("invalid %s %q: give :PORT, IPV4:PORT or [IPV6]:PORT, as in :9000 or :9000=:8080", part, text)
	}
	addr := parsed.Addr().Unmap()
	if portAlone {
		addr = netip.Addr{}
	}
	*a = netip.AddrPortFrom(addr, parsed.Port())
	return nil
}

// loops reports whether the target is, or may be, the listener itself.
func (s Spec) loops() bool {
	listen := s.Listen.Addr()
	for _, target := range s.Targets() {
		everywhere := !listen.IsValid() || listen.IsUnspecified() && (listen.Is6() || target.Addr().Is4())
		if target.Port() == s.Listen.Port() && (everywhere || listen == target.Addr()) {
			return true
		}
	}
	return false
}

// Targets returns the addresses to try, in order. Without an address both loopback
// addresses are tried: a command may listen on only one of the two.
func (s Spec) Targets() []netip.AddrPort {
	port := s.Target.Port()
	switch {
	case port == 0:
		return nil
	case s.Target.Addr().IsValid():
		return []netip.AddrPort{s.Target}
	}
	return []netip.AddrPort{
		netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port),
		netip.AddrPortFrom(netip.IPv6Loopback(), port),
	}
}

// String returns the form that Parse accepts.
func (s Spec) String() string {
	text := formatAddress(s.Listen)
	if s.Target.Port() != 0 {
		text += "=" + formatAddress(s.Target)
	}
	return text
}

// formatAddress returns :PORT if a has no address.
func formatAddress(a netip.AddrPort) string {
	if a.Addr().IsValid() {
		return a.String()
	}
	return ":" + strconv.Itoa(int(a.Port()))
}

// Mode is how health checks are treated.
type Mode uint32

// The modes. A new listener is in mode Pass.
const (
	Pass  Mode = iota // relay to the target, or answer 200 without a target
	Fail              // answer 503
	Close             // refuse connections: the listening socket is closed
)

var modeNames = []string{Pass: "pass", Fail: "fail", Close: "close"}

// String returns the mode as --health-during spells it.
func (m Mode) String() string { return modeNames[m] }
