package procfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// read opens a file of the network namespace or of the system, and passes the file to parse.
func (r Root) read(name string, parse func(io.Reader) error) error {
	path := r.String() + "/" + name
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot open %q: %w", path, errors.Unwrap(err)) // without the path
	}
	defer file.Close()
	if err := parse(file); err != nil {
		return fmt.Errorf("cannot read %q: %w", path, err)
	}
	return nil
}

// both calls use with the rows of the tables of IPv4 and IPv6.
func (r Root) both(name string, use func(row) bool) error {
	rows := func(file io.Reader) error { return eachRow(file, use) }
	if err := r.read("net/"+name, rows); err != nil {
		return err
	}
	err := r.read("net/"+name+"6", rows)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // IPv6 is off
	}
	return err
}

// TCP appends the TCP sockets of both families to dst, without cookies, control groups,
// times and the backlogs of listeners. Sockets in an accept queue, in SYN_RECV and in
// TIME_WAIT have no inode. On an error dst is returned unchanged.
func (r Root) TCP(dst []tcp.Socket) ([]tcp.Socket, error) {
	found := dst
	err := r.both("tcp", func(row row) bool {
		row.DiscountFIN()
		found = append(found, row.Socket)
		return isTCP(&row)
	})
	if err != nil {
		return dst, err
	}
	return found, nil
}

// isTCP reports whether a row may be a TCP socket: gVisor has a state 0, and the kernel has
// room for new states, in four bits.
func isTCP(r *row) bool { return r.State < 16 }

// PingPong calls visit with every TCP socket, and whether the kernel has the connection in
// ping-pong mode: the last data sent followed the data received so soon that it carried the
// acknowledgement, and no acknowledgement was sent alone since (inet_csk_in_pingpong_mode).
// The mode is the lowest bit of the last column but two; see get_tcp4_sock in
// net/ipv4/tcp_ipv4.c.
func (r Root) PingPong(visit func(local, remote netip.AddrPort, pingpong bool)) error {
	return r.both("tcp", func(row row) bool {
		visit(row.Local, row.Remote, row.pingpong)
		return true
	})
}

// UDP lists the bound and unconnected UDP sockets of both families: servers, and clients of many servers.
func (r Root) UDP() (found []tcp.Socket, err error) {
	err = r.both("udp", func(row row) bool {
		if row.Local.Port() != 0 && row.Remote.Port() == 0 && row.Remote.Addr().IsUnspecified() {
			found = append(found, row.Socket)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Unix returns the inodes of the Unix sockets that listen, abstract names included.
func (r Root) Unix() (inodes []uint32, err error) {
	err = r.read("net/unix", func(file io.Reader) (err error) {
		inodes, err = parseUnix(file)
		return err
	})
	return inodes, err
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
	text, err := os.ReadFile(r.String() + "/net/snmp")
	if err != nil {
		return c, err
	}
	c, err = parseCounters(string(text))
	text, _ = os.ReadFile(r.String() + "/net/netstat")
	c.ListenOverflows, _ = column(string(text), "TcpExt: ", "ListenOverflows")
	return c, err
}

// parseCounters finds the counters in net/snmp.
func parseCounters(text string) (c Counters, err error) {
	for name, to := range map[string]*uint64{
		"ActiveOpens": &c.ActiveOpens, "PassiveOpens": &c.PassiveOpens, "InSegs": &c.InSegs, "OutRsts": &c.OutRsts,
	} {
		*to, err = column(text, "Tcp: ", name)
		if err != nil {
			return Counters{}, err
		}
	}
	return c, nil
}

// Datagrams returns how many datagrams of UDP the programs of the network namespace have received.
func (r Root) Datagrams() (n uint64, err error) {
	text, err := os.ReadFile(r.String() + "/net/snmp")
	if err != nil {
		return 0, err
	}
	six, _ := os.ReadFile(r.String() + "/net/snmp6") // there is none if IPv6 is off
	return countDatagrams(string(text), string(six))
}

// countDatagrams adds the counters in net/snmp and net/snmp6, which has a line for each counter.
func countDatagrams(text, six string) (n uint64, err error) {
	n, err = column(text, "Udp: ", "InDatagrams")
	_, number, found := strings.Cut("\n"+six, "\nUdp6InDatagrams")
	if err != nil || !found {
		return n, err
	}
	number, _, _ = strings.Cut(number, "\n")
	n6, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
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

// PortRange is a range of ports, both ends included. The zero value is empty.
type PortRange struct{ First, Last uint16 }

// Has reports whether the port is in the range.
func (r PortRange) Has(port uint16) bool {
	return r != PortRange{} && r.First <= port && port <= r.Last
}

// LocalPorts returns the range of ports that the kernel assigns to sockets bound to no port:
// ip_local_port_range, of ip(7).
func (r Root) LocalPorts() (PortRange, error) {
	text, err := os.ReadFile(r.String() + "/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return PortRange{}, err
	}
	return parsePortRange(string(text))
}

func parsePortRange(text string) (PortRange, error) {
	fields := strings.Fields(text)
	if len(fields) == 2 && strings.HasSuffix(text, "\n") {
		first, err1 := strconv.ParseUint(fields[0], 10, 16)
		last, err2 := strconv.ParseUint(fields[1], 10, 16)
		if err1 == nil && err2 == nil && 0 < first && first <= last {
			return PortRange{uint16(first), uint16(last)}, nil
		}
	}
	return PortRange{}, errors.New("invalid port range")
}
