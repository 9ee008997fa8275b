package procfs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// eachOfBoth is eachSocket for the tables of IPv4 and IPv6.
func (r Root) eachOfBoth(name string, use func(*tcp.Socket) bool) error {
	if err := r.eachSocket(name, use); err != nil {
		return err
	}
	err := r.eachSocket(name+"6", use)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // IPv6 is off
	}
	return err
}

// TCP calls visit with the TCP sockets of both families, without cookies, control groups,
// times and the backlogs of listeners. Sockets in an accept queue, in SYN_RECV and in
// TIME_WAIT have no inode.
//
// Info.PingPong is whether the kernel has the connection in
// ping-pong mode: the last data sent followed the data received so soon that it carried the
// acknowledgement, and no acknowledgement was sent alone since (inet_csk_in_pingpong_mode).
func (r Root) TCP(visit func(*tcp.Socket)) error {
	return r.eachOfBoth("net/tcp", func(s *tcp.Socket) bool {
		s.DiscountFIN()
		visit(s)
		return true
	})
}

// UDP lists the bound and unconnected UDP sockets of both families: servers, and clients of many servers.
func (r Root) UDP() (found []tcp.Socket, err error) {
	err = r.eachOfBoth("net/udp", func(s *tcp.Socket) bool {
		if s.Local.Port() != 0 && s.Remote.Port() == 0 {
			found = append(found, *s)
		}
		return true
	})
	return found, err
}

// Counters are counters of TCP since the network namespace was made, by their names in RFC
// 4022 and in net/netstat.
type Counters struct {
	ActiveOpens     uint64 // connections made from here
	PassiveOpens    uint64 // connections accepted
	InSegs          uint64 // segments received, by any connection
	OutRsts         uint64 // segments sent that reset a connection, or refuse one
	ListenOverflows uint64 // handshakes begun or finished while an accept queue was full, and forgotten; 0: unknown
}

// Counters returns the counters of the network namespace.
func (r Root) Counters() (c Counters, err error) {
	text, err := r.text(system, "net/snmp")
	if err != nil {
		return c, err
	}
	for name, to := range map[string]*uint64{
		"ActiveOpens": &c.ActiveOpens, "PassiveOpens": &c.PassiveOpens, "InSegs": &c.InSegs, "OutRsts": &c.OutRsts,
	} {
		*to, err = column(text, "Tcp: ", name)
		if err != nil {
			return Counters{}, err
		}
	}
	text, _ = r.text(system, "net/netstat")
	c.ListenOverflows, _ = column(text, "TcpExt: ", "ListenOverflows")
	return c, nil
}

// Datagrams returns how many datagrams of UDP the programs of the network namespace have received.
func (r Root) Datagrams() (n uint64, err error) {
	text, err := r.text(system, "net/snmp")
	if err != nil {
		return 0, err
	}
	n, err = column(text, "Udp: ", "InDatagrams")
	text, _ = r.text(system, "net/snmp6") // a line for each counter; there is none if IPv6 is off
	number := field("\n"+text, "Udp6InDatagrams")
	if err != nil || number == "" {
		return n, err
	}
	n6, err := strconv.ParseUint(number, 10, 64)
	return n + n6, err
}

// column returns a counter of net/snmp or net/netstat, where a line of names goes before each line
// of numbers, both after the protocol.
func column(text, protocol, name string) (uint64, error) {
	_, text, _ = strings.Cut("\n"+text, "\n"+protocol)
	names, text, _ := strings.Cut(text, "\n"+protocol)
	numbers, _, whole := strings.Cut(text, "\n")
	at, fields := slices.Index(strings.Fields(names), name), strings.Fields(numbers)
	if !whole || at < 0 || at >= len(fields) {
		return 0, errors.New(name + " is missing")
	}
	return strconv.ParseUint(fields[at], 10, 64)
}

// PortRange is a range of ports, both ends included. The zero value has no port.
type PortRange struct{ First, Last uint16 }

// Has reports whether the port is in the range.
func (r PortRange) Has(port uint16) bool { return r.First <= port && port <= r.Last }

// LocalPorts returns the range of ports that the kernel assigns to sockets bound to no port:
// ip_local_port_range, of ip(7); none if that is not known.
func (r Root) LocalPorts() (ports PortRange) {
	text, _ := r.text(system, "sys/net/ipv4/ip_local_port_range")
	_, _ = fmt.Sscan(text, &ports.First, &ports.Last)
	return ports
}
