package health

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// backlog is how many connections may wait to be accepted, and the usual limit of
// the kernel (net.core.somaxconn). When the queue is full, the kernel drops the SYN
// of the next client, and the client's check is a second late.
const backlog = 4096

// newSocket returns a non-blocking TCP socket, closed on exec.
func newSocket(family int) (fd int, err error) {
	return unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_TCP)
}

// listen listens on IPv6 and IPv4 if the address is missing or [::], and on IPv4
// alone if the address is missing and the kernel has no IPv6.
func listen(at netip.AddrPort) (fd int, err error) {
	addr := at.Addr()
	if addr.IsValid() && addr != netip.IPv6Unspecified() {
		return listenOn(at)
	}
	fd, err = listenOn(netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port()))
	if (err == unix.EAFNOSUPPORT || err == unix.EADDRNOTAVAIL) && !addr.IsValid() {
		return listenOn(netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()))
	}
	return fd, err
}

func listenOn(at netip.AddrPort) (fd int, err error) {
	fd, err = newSocket(family(at))
	if err != nil {
		return -1, err
	}
	if err := bindAndListen(fd, at); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func bindAndListen(fd int, at netip.AddrPort) error {
	if at.Addr() == netip.IPv6Unspecified() {
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, sockaddr(at)); err != nil {
		return err
	}
	return unix.Listen(fd, backlog)
}

// checkTarget returns an error if the target's address is outside this network
// namespace, where the command listens. All other errors show in the checks.
func checkTarget(target netip.AddrPort) error {
	if !target.Addr().IsValid() || target.Port() == 0 {
		return nil
	}
	fd, err := newSocket(family(target))
	if err == nil {
		defer unix.Close(fd)
		err = unix.Bind(fd, sockaddr(netip.AddrPortFrom(target.Addr(), 0)))
	}
	if err == unix.EADDRNOTAVAIL || err == unix.EINVAL {
		return fmt.Errorf("cannot pass health checks to %v: not an address of this container; give :%d for the port on loopback", target, target.Port())
	}
	return nil
}

// connect starts to connect, and returns the connection as the kernel lists it.
func connect(fd int, to netip.AddrPort) (ProxiedConn, error) {
	if err := unix.Connect(fd, sockaddr(to)); err != nil && err != unix.EINPROGRESS && err != unix.EINTR {
		return ProxiedConn{}, err
	}
	local, err := localAddress(fd)
	return ProxiedConn{Local: local, Target: to}, err
}

func localAddress(fd int) (netip.AddrPort, error) {
	name, err := unix.Getsockname(fd)
	return addrPort(name), err
}

// addrPort returns the zero value for a name that is not an IP address.
func addrPort(name unix.Sockaddr) netip.AddrPort {
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(name.Addr), uint16(name.Port))
	}
	return netip.AddrPort{}
}

func family(a netip.AddrPort) int {
	if a.Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

// send sends as many bytes as the socket takes without waiting. The error is EAGAIN
// if the socket takes none. send raises no SIGPIPE.
func send(fd int, b []byte) (n int, err error) {
	for {
		n, err = unix.SendmsgN(fd, b, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// wouldBlock reports whether a read failed only because no byte was ready.
func wouldBlock(err error) bool { return err == unix.EAGAIN || err == unix.EINTR }

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
