package health

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

// The two parts of a Spec, as errors name them.
const (
	listenPart = "listen address"
	targetPart = "target"
)

const example = "as in :9000 or :9000=:8080"

// Parse parses LISTEN[=TARGET]. Each part is :PORT, IPV4:PORT or [IPV6]:PORT. The
// target :PORT is on loopback.
func Parse(text string) (Spec, error) {
	s, err := parse(text)
	if err != nil {
		return Spec{}, err
	}
	return s, nil
}

func parse(text string) (s Spec, err error) {
	listen, target, hasTarget := strings.Cut(text, "=")
	s.Listen, err = parseAddress(listenPart, listen)
	if err != nil || !hasTarget {
		return s, err
	}
	if strings.Contains(target, "=") {
		return s, fmt.Errorf("invalid target %q: give one target, %s", target, example)
	}
	s.Target, err = parseAddress(targetPart, target)
	if err != nil {
		return s, err
	}
	if s.Target.Addr().IsUnspecified() {
		return s, fmt.Errorf("invalid target %q: all addresses; give %v=:%d for the port on loopback", target, formatAddress(s.Listen), s.Target.Port())
	}
	if s.loops() {
		return s, fmt.Errorf("invalid target %q: the listener itself; give LISTEN a port of its own, and the command's port after the =", target)
	}
	return s, nil
}

// parseAddress parses one part of a Spec.
func parseAddress(part, text string) (netip.AddrPort, error) {
	colon := strings.LastIndexByte(text, ':')
	if colon < 0 {
		hint := "no port; give LISTEN or LISTEN=TARGET, " + example
		if _, err := strconv.ParseUint(text, 10, 16); err == nil {
			hint = "give :" + text
		}
		return netip.AddrPort{}, fmt.Errorf("invalid %s %q: %s", part, text, hint)
	}
	port, err := strconv.ParseUint(text[colon+1:], 10, 16)
	if err != nil || port == 0 {
		return netip.AddrPort{}, fmt.Errorf("invalid port %q in %s %q: give 1 to 65535, %s", text[colon+1:], part, text, example)
	}
	addr, err := parseHost(text[:colon])
	return netip.AddrPortFrom(addr, uint16(port)), err
}

// parseHost parses the text before the colon. An empty text is the zero address.
func parseHost(text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	inner, opened := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	addr, err := netip.ParseAddr(inner)
	hint := ""
	switch {
	case err != nil || opened != closed:
		hint = "names are not looked up; give 127.0.0.1, [::1] or nothing before the port"
	case addr.Zone() != "":
		hint = "give the address without its zone"
	case addr.Is6() && !opened:
		hint = fmt.Sprintf("give the IPv6 address in brackets: [%v]", addr)
	case addr.Is4() && opened:
		hint = fmt.Sprintf("give the IPv4 address without brackets: %v", addr)
	}
	if hint != "" {
		return netip.Addr{}, fmt.Errorf("invalid IP address %q: %s", text, hint)
	}
	return addr.Unmap(), nil
}

// loops reports whether the target is, or may be, the listener itself.
func (s Spec) loops() bool {
	listen, target := s.Listen.Addr(), s.Target.Addr()
	switch {
	case s.Listen.Port() != s.Target.Port():
		return false
	case !listen.IsValid() || listen == netip.IPv6Unspecified():
		return true
	case listen == netip.IPv4Unspecified():
		return !target.IsValid() || target.Is4()
	case !target.IsValid():
		return listen.IsLoopback()
	}
	return listen == target
}

// targets returns the addresses to try, in order. Without an address both loopback
// addresses are tried: a command may listen on only one of the two.
func (s Spec) targets() []netip.AddrPort {
	port := s.Target.Port()
	switch {
	case port == 0:
		return nil
	case s.Target.Addr().IsValid():
		return []netip.AddrPort{s.Target}
	}
	loopback4 := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return []netip.AddrPort{netip.AddrPortFrom(loopback4, port), netip.AddrPortFrom(netip.IPv6Loopback(), port)}
}

// String returns the form that Parse accepts.
func (s Spec) String() string {
	if s.Target.Port() == 0 {
		return formatAddress(s.Listen)
	}
	return formatAddress(s.Listen) + "=" + formatAddress(s.Target)
}

// formatAddress returns :PORT if a has no address.
func formatAddress(a netip.AddrPort) string {
	if a.Addr().IsValid() {
		return a.String()
	}
	return ":" + strconv.Itoa(int(a.Port()))
}
