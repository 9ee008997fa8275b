package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// crowd is a server with connections, in our network namespace.
type crowd struct {
	listener int
	addr     unix.SockaddrInet4
	made     int   // connections so far
	kept     int   // open connections
	keepers  []int // processes that hold the server's ends
}

// armful is the number of connections that a keeper holds: fewer than the descriptors
// that a process is mostly allowed, even if all are passed on to another process.
const armful = 250

// newCrowd returns a server without connections.
func newCrowd() *crowd {
	c := &crowd{addr: unix.SockaddrInet4{Addr: [4]byte{10, 0, 0, 1}}}
	c.listener = must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	check(unix.Bind(c.listener, &c.addr))
	check(unix.Listen(c.listener, 128))
	c.addr.Port = must(unix.Getsockname(c.listener)).(*unix.SockaddrInet4).Port
	return c
}

// connect makes a connection on which a request has been answered.
func (c *crowd) connect() (client, server int) {
	client = must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	from := unix.SockaddrInet4{Port: 1024 + c.made/1000} // each only once: a client that vanished has not closed the connection
	binary.BigEndian.PutUint32(from.Addr[:], 10<<24|1<<16|uint32(c.made%1000))
	c.made++
	check(unix.Bind(client, &from))
	check(unix.Connect(client, &c.addr))
	server, _, err := unix.Accept4(c.listener, unix.SOCK_CLOEXEC)
	check(err)
	say(client, server, 100)
	say(server, client, 200)
	return client, server
}

var text [1000]byte

// say sends n bytes from one end to the other.
func say(from, to, n int) {
	must(unix.Write(from, text[:n]))
	if got := must(unix.Read(to, text[:])); got != n {
		check(fmt.Errorf("a connection gave %d bytes of %d", got, n))
	}
}

// grow keeps n connections open. The clients vanish without a segment (TCP_REPAIR), as
// if on another host: the kernel has the server's ends alone.
func (c *crowd) grow(n int) {
	for c.kept < n {
		var ends []uintptr
		for range min(armful, n-c.kept) {
			client, server := c.connect()
			check(unix.SetsockoptInt(client, unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)) // no byte stays unacknowledged
			check(unix.SetsockoptInt(client, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1))
			check(unix.Close(client))
			ends = append(ends, uintptr(server))
		}
		c.keep(ends)
	}
}

// keep hands descriptors to another process.
func (c *crowd) keep(ends []uintptr) {
	pid := must(syscall.ForkExec("/bin/sleep", []string{"sleep", "1000"}, &syscall.ProcAttr{
		Env: env, Files: append([]uintptr{null.Fd(), null.Fd(), 2}, ends...), Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}))
	c.keepers = append(c.keepers, pid)
	c.kept += len(ends)
	for _, end := range ends {
		unix.Close(int(end))
	}
}

// short makes a connection and closes both ends at once.
func (c *crowd) short() {
	client, server := c.connect()
	check(errors.Join(unix.Close(client), unix.Close(server)))
}

func (c *crowd) close() {
	unix.Close(c.listener)
	for _, pid := range c.keepers {
		unix.Kill(pid, unix.SIGKILL)
		wait(pid)
	}
}
