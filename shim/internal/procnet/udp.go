package procnet

import (
	"errors"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// UDP is a bound and unconnected UDP socket: a server, or a client of many servers.
type UDP struct {
	Local netip.AddrPort // unmapped
	Inode uint32
}

// ParseUDP lists the unconnected sockets of net/udp or net/udp6.
func ParseUDP(r io.Reader) (found []UDP, err error) {
	err = eachRow(r, func(r row) bool {
		if r.local.Port() != 0 && r.remote.Port() == 0 && r.remote.Addr().IsUnspecified() {
			found = append(found, UDP{r.local, r.inode})
		}
		return true
	})
	return found, err
}

// PortRange is a range of ports, both ends included. The zero value is empty.
type PortRange struct{ First, Last uint16 }

// Has reports whether the port is in the range.
func (r PortRange) Has(port uint16) bool {
	return r != PortRange{} && r.First <= port && port <= r.Last
}

// ParseLocalPorts reads ip_local_port_range, of ip(7).
func ParseLocalPorts(r io.Reader) (PortRange, error) {
	line, err := newLines(r).next()
	if err != nil && err != io.EOF {
		return PortRange{}, err
	}
	fields := strings.Fields(string(line))
	if len(fields) != 2 {
		return PortRange{}, errors.New("invalid port range")
	}
	first, one := strconv.ParseUint(fields[0], 10, 16)
	last, two := strconv.ParseUint(fields[1], 10, 16)
	if one != nil || two != nil || first == 0 || first > last {
		return PortRange{}, errors.New("invalid port range")
	}
	return PortRange{uint16(first), uint16(last)}, nil
}
