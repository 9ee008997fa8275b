package procnet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Root is a directory with a subdirectory net: /proc (or "") shows our own network
// namespace, /proc/PID the namespace of another process.
type Root string

// TCP appends the TCP sockets of both families to dst, without cookies, control groups and
// times. On an error dst is returned unchanged.
func (r Root) TCP(dst []tcp.Socket) ([]tcp.Socket, error) {
	found := dst
	err := r.both("tcp", func(file io.Reader) (err error) {
		found, err = ParseTCP(found, file)
		return err
	})
	if err != nil {
		return dst, err
	}
	return found, nil
}

// UDP lists the unconnected UDP sockets of both families.
func (r Root) UDP() (found []UDP, err error) {
	err = r.both("udp", func(file io.Reader) error {
		more, err := ParseUDP(file)
		found = append(found, more...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Unix lists the Unix sockets that listen.
func (r Root) Unix() (found []Unix, err error) {
	err = r.read("net/unix", func(file io.Reader) (err error) {
		found, err = ParseUnix(file)
		return err
	})
	return found, err
}

// Counters returns the counters of the network namespace.
func (r Root) Counters() (c Counters, err error) {
	err = r.read("net/snmp", func(file io.Reader) (err error) {
		c, err = ParseCounters(file)
		return err
	})
	return c, err
}

// LocalPorts returns the range of ports that the kernel assigns to sockets bound to no port,
// always the range of our own network namespace, and only below /proc itself.
func (r Root) LocalPorts() (ports PortRange, err error) {
	err = r.read("sys/net/ipv4/ip_local_port_range", func(file io.Reader) (err error) {
		ports, err = ParseLocalPorts(file)
		return err
	})
	return ports, err
}

// both reads the tables of IPv4 and IPv6. If IPv6 is off the second file is missing.
func (r Root) both(name string, parse func(io.Reader) error) error {
	if err := r.read("net/"+name, parse); err != nil {
		return err
	}
	err := r.read("net/"+name+"6", parse)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (r Root) read(name string, parse func(io.Reader) error) error {
	if r == "" {
		r = "/proc"
	}
	path := filepath.Join(string(r), name)
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot open %q: %w", path, bare(err))
	}
	defer file.Close()
	if err := parse(file); err != nil {
		return fmt.Errorf("cannot read %q: %w", path, bare(err))
	}
	return nil
}

// bare returns the error without the path, which the message has already.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
