package bench

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// crowd is a server with connections.
type crowd struct {
	listener int
	addr     unix.SockaddrInet4
	made     int // connections so far
	kept     int // open connections
}

// armful is the number of connections that a process holds: fewer than the descriptors
// that it is mostly allowed, even if all are passed on to another process.
const armful = 250

// newCrowd returns a server without connections.
func newCrowd() *crowd {
	c := &crowd{addr: unix.SockaddrInet4{Addr: [4]byte{10, 0, 0, 1}}}
	c.listener = must.Get(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	must.Do(unix.Bind(c.listener, &c.addr))
	must.Do(unix.Listen(c.listener, 128))
	c.addr.Port = must.Get(unix.Getsockname(c.listener)).(*unix.SockaddrInet4).Port
	return c
}

// connect makes a connection on which a request has been answered.
func (c *crowd) connect() (client, server int) {
	client = must.Get(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	// Each address only once: a client that vanished has not closed the connection.
	from := unix.SockaddrInet4{Port: 1024 + c.made>>10, Addr: [4]byte{10, 1, byte(c.made >> 8 & 3), byte(c.made)}}
	c.made++
	must.Do(unix.Bind(client, &from))
	must.Do(unix.Connect(client, &c.addr))
	server, _, err := unix.Accept4(c.listener, unix.SOCK_CLOEXEC)
	must.Do(err)
	say(client, server, 100)
	say(server, client, 200)
	return client, server
}

// say sends n bytes from one end to the other.
func say(from, to, n int) {
	text := make([]byte, n)
	must.Get(unix.Write(from, text))
	got := must.Get(unix.Read(to, text))
	must.Be(got == n, "a connection gave %d bytes of %d", got, n)
}

// grow keeps n connections open, whose ends other processes hold. The clients vanish without a
// segment (TCP_REPAIR), as if on another host: the kernel has the server's ends alone.
func (c *crowd) grow(n int) {
	for c.kept < n {
		files := []uintptr{null.Fd(), null.Fd(), 2}
		var servers []int
		for range min(armful, n-c.kept) {
			client, server := c.connect()
			must.Do(unix.SetsockoptInt(client, unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)) // no byte stays unacknowledged
			must.Do(unix.SetsockoptInt(client, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1))
			must.Do(unix.Close(client))
			servers = append(servers, server)
			files = append(files, uintptr(server))
		}
		must.Get(syscall.ForkExec("/bin/sleep", []string{"sleep", "1000"}, &syscall.ProcAttr{Env: env, Files: files}))
		c.kept += len(servers)
		for _, server := range servers {
			unix.Close(server)
		}
	}
}
