package health

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Spec is LISTEN[=TARGET].
type Spec struct {
	Listen netip.AddrPort // without an address: all of them
	Target netip.AddrPort // without an address: loopback; with port 0: there is none
}

// form is what a value looks like.
const form = "give LISTEN or LISTEN=TARGET, as in :9000 or :9000=:8080"

// Parse reads LISTEN[=TARGET]. Each is :PORT, IPV4:PORT or [IPV6]:PORT; TARGET's
// :PORT is loopback's.
func Parse(text string) (Spec, error) {
	listen, target, passes := strings.Cut(text, "=")
	var s Spec
	var err error
	if s.Listen, err = parseAddress(listen); err != nil {
		return Spec{}, fmt.Errorf("%q is nothing to listen on: %w", text, err)
	}
	if !passes {
		return s, nil
	}
	if strings.Contains(target, "=") {
		return Spec{}, fmt.Errorf("%q has more than one target: %s", text, form)
	}
	if s.Target, err = parseAddress(target); err != nil {
		return Spec{}, fmt.Errorf("%q has nothing to pass checks to: %w", text, err)
	}
	port := s.Target.Port()
	switch {
	case s.Target.Addr().IsUnspecified():
		return Spec{}, fmt.Errorf("%q passes checks to every address: give %v=:%d for loopback's port", text, portOrAddress(s.Listen), port)
	case s.loops():
		return Spec{}, fmt.Errorf("%q would pass checks to itself: give a port of its own to listen on, and the command's after the =", text)
	}
	return s, nil
}

func parseAddress(text string) (netip.AddrPort, error) {
	colon := strings.LastIndexByte(text, ':')
	if colon < 0 {
		if _, err := strconv.ParseUint(text, 10, 16); err == nil {
			return netip.AddrPort{}, fmt.Errorf("a port is written :%s", text)
		}
		return netip.AddrPort{}, fmt.Errorf("%q has no port: %s", text, form)
	}
	port, err := strconv.ParseUint(text[colon+1:], 10, 16)
	if err != nil || port == 0 {
		return netip.AddrPort{}, fmt.Errorf("%q is no port from 1 to 65535: %s", text[colon+1:], form)
	}
	addr, err := parseHost(text[:colon])
	return netip.AddrPortFrom(addr, uint16(port)), err
}

// parseHost reads what stands before the colon; the zero address for nothing.
func parseHost(text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	inner, bracket := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	addr, err := netip.ParseAddr(inner)
	switch {
	case err != nil || bracket != closed:
		return netip.Addr{}, fmt.Errorf("%q is no IP address: names are not looked up; give 127.0.0.1, [::1] or nothing before the port", text)
	case addr.Zone() != "":
		return netip.Addr{}, fmt.Errorf("%q has a zone: give an address without one", text)
	case addr.Is6() && !bracket:
		return netip.Addr{}, fmt.Errorf("an IPv6 address is written in brackets: [%v]", addr)
	case addr.Is4() && bracket:
		return netip.Addr{}, fmt.Errorf("an IPv4 address is written without brackets: %v", addr)
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

// targets are the addresses to try, in this order: a command may listen on
// either loopback alone.
func (s Spec) targets() []netip.AddrPort {
	port := s.Target.Port()
	switch {
	case port == 0:
		return nil
	case s.Target.Addr().IsValid():
		return []netip.AddrPort{s.Target}
	}
	four := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return []netip.AddrPort{netip.AddrPortFrom(four, port), netip.AddrPortFrom(netip.IPv6Loopback(), port)}
}

// String is the spec as it is given.
func (s Spec) String() string {
	if s.Target.Port() == 0 {
		return portOrAddress(s.Listen)
	}
	return portOrAddress(s.Listen) + "=" + portOrAddress(s.Target)
}

func portOrAddress(a netip.AddrPort) string {
	if a.Addr().IsValid() {
		return a.String()
	}
	return ":" + strconv.Itoa(int(a.Port()))
}
