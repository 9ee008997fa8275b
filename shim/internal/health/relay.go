package health

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// connectAdmitted starts to connect the clients that were admitted. In a flood, while
// more connections wait to be accepted, silent clients are not connected yet: most of
// the silent clients are reset before their first byte.
func (l *Listener) connectAdmitted(moreWait bool) {
	for c := range l.active() {
		if c.phase == connecting && c.target.fd < 0 && (c.hasSent || !moreWait) {
			l.connect(c)
		}
	}
}

// connect starts to connect a client to the first target that may accept. If every
// target refuses, the client is reset.
func (l *Listener) connect(c *client) {
	for c.phase == connecting && c.targetIndex < len(l.targets) {
		if err := l.dial(c, l.targets[c.targetIndex]); err == nil {
			return
		}
		c.targetIndex++
	}
	l.drop(c, true)
}

// dial starts to connect to one target. Without a free descriptor clients are reset
// to make room, perhaps c itself. The list of proxied connections has the connection
// before the kernel shows the connection.
func (l *Listener) dial(c *client, to netip.AddrPort) error {
	fd, err := newSocket(family(to))
	for scarce(err) && l.evictOne() && c.phase != free {
		fd, err = newSocket(family(to))
	}
	if err != nil {
		return err
	}
	c.target.fd = fd
	unix.SetsockoptInt(c.conn.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	err = l.proxied.add(c.slot, func() (ProxiedConn, error) { return connect(fd, to) })
	if err != nil {
		l.closeTarget(c, false)
	}
	return err
}

// finishConnect begins to relay, or tries the next target. The deadline for the
// first byte stays.
func (l *Listener) finishConnect(c *client) {
	soError, err := unix.GetsockoptInt(c.target.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && soError == 0 {
		l.opens.Add(1)
		c.phase = relaying
		return
	}
	l.closeTarget(c, false)
	c.targetIndex++
	l.connect(c)
}

// relay moves bytes between a client and its target. The arguments say which of the
// two sockets may be ready.
func (l *Listener) relay(c *client, conn, target bool) {
	if c.phase == connecting && target {
		l.finishConnect(c)
		if c.phase == free {
			return
		}
	}
	if conn && c.up.canRead() {
		if l.newRequest(c) {
			l.takeOver(c)
			return
		}
		l.readClient(c)
	}
	if target && c.phase == relaying && c.down.canRead() {
		l.readTarget(c)
	}
	l.write(c)
}

func (l *Listener) readClient(c *client) {
	if l.read(c, &c.up, c.conn.fd) {
		c.hasSent = true
		c.answered = false
	}
}

func (l *Listener) readTarget(c *client) {
	if l.read(c, &c.down, c.target.fd) {
		c.answered = true
	}
}

// read reads one direction, and reports whether bytes came.
func (l *Listener) read(c *client, f *flow, fd int) bool {
	moved := f.read(fd)
	if moved {
		l.touch(c)
	} else if f.eof && c.phase == relaying {
		l.limitHalfClosed(c)
	}
	return moved
}

// write writes in both directions, and drops a client whose connection has ended.
func (l *Listener) write(c *client) {
	moved := c.down.write(c.conn.fd)
	if c.phase == relaying && c.up.write(c.target.fd) {
		moved = true
	}
	if moved {
		l.touch(c)
	}
	if c.up.resetDue() || c.down.resetDue() || c.up.shut && c.down.shut {
		l.drop(c, c.up.reset || c.down.reset)
	}
}

// newRequest reports whether the client is about to send a request after the stop
// began. EOF is not a request.
func (l *Listener) newRequest(c *client) bool {
	inProgress := c.hasSent && !c.answered || !c.down.isEmpty() || c.down.eof
	if l.currentMode() == Pass || inProgress {
		return false
	}
	n, _, err := unix.Recvfrom(c.conn.fd, c.up.buffer()[:1], unix.MSG_PEEK)
	return err == nil && n > 0
}

// takeOver closes the connection to the target, and answers the client here.
func (l *Listener) takeOver(c *client) {
	if l.currentMode() == Close {
		l.drop(c, true)
		return
	}
	l.closeTarget(c, false)
	c.phase = reading
	c.deadline = l.now.Add(l.timeouts.setup)
	c.up = c.up.cleared()
	c.down = c.down.cleared()
	l.readHead(c)
}
