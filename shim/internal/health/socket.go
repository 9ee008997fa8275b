package health

import (
	"cmp"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// backlog is how many connections may wait to be accepted, and the usual limit of
// the kernel (net.core.somaxconn). When the queue is full, the kernel drops the SYN
// of the next client, and the client's check is a second late.
const backlog = 4096

// newSocket returns a non-blocking socket, closed on exec. Over TCP it sends without delay, and so
// do the connections that it accepts.
func newSocket(family int) (fd int, err error) {
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	return fd, err
}

// sockaddr returns an address for the kernel, [::] if it is missing, and its family.
func sockaddr(a netip.AddrPort) (family int, at unix.Sockaddr) {
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

// localAddress returns the address of a TCP socket.
func localAddress(fd int) netip.AddrPort {
	name, _ := unix.Getsockname(fd)
	return addrPort(name)
}

// addrPort is the inverse of sockaddr.
func addrPort(at unix.Sockaddr) netip.AddrPort {
	switch at := at.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(at.Addr), uint16(at.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(at.Addr), uint16(at.Port))
	}
	return netip.AddrPort{}
}

// bind returns a socket bound to an address. On [::] it accepts IPv4, too.
func bind(at netip.AddrPort) (fd int, err error) {
	family, addr := sockaddr(at)
	fd, err = newSocket(family)
	unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0) // fails on IPv4
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	err = cmp.Or(err, unix.Bind(fd, addr))
	if err != nil {
		closeSocket(fd, false)
		return -1, err
	}
	return fd, nil
}

// listen listens on IPv6 and IPv4 if the address is missing or [::], and on IPv4
// alone if the address is missing and the kernel has no IPv6.
func listen(at netip.AddrPort) (fd int, err error) {
	fd, err = bind(at)
	if !at.Addr().IsValid() && (err == unix.EAFNOSUPPORT || err == unix.EADDRNOTAVAIL) {
		fd, err = bind(netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()))
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	return fd, err
}

// checkTarget returns an error if the target's address is outside this network
// namespace, where the command listens. All other errors show in the checks.
func checkTarget(target netip.AddrPort) error {
	if !target.Addr().IsValid() {
		return nil
	}
	fd, err := bind(netip.AddrPortFrom(target.Addr(), 0))
	closeSocket(fd, false)
	if err == unix.EADDRNOTAVAIL || err == unix.EINVAL {
		return fmt.Errorf("cannot pass health checks to %v: not an address of this container; "+
			"give :%d for the port on loopback", target, target.Port())
	}
	return nil
}

// closeSocket closes a socket, if any (fd -1: none). A reset discards the bytes
// not yet sent, and leaves no socket in TIME_WAIT.
func closeSocket(fd int, reset bool) {
	if fd < 0 {
		return
	}
	if reset {
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	unix.Close(fd)
}
