package health

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// connectAdmitted starts to connect the clients that were admitted. In a flood, while
// more connections wait to be accepted, silent clients are not connected yet: most of
// them are reset before they say anything.
func (l *Listener) connectAdmitted(moreWait bool) {
	for i := range l.clients {
		c := &l.clients[i]
		if c.phase == connecting && c.target.fd < 0 && (c.spoke || !moreWait) {
			l.connect(c)
		}
	}
}

// connect starts to connect a client to the first target that may accept. If there
// is none, the client is reset.
func (l *Listener) connect(c *client) {
	for ; c.phase == connecting && c.try < len(l.targets); c.try++ {
		if l.dial(c, l.targets[c.try]) == nil {
			return
		}
	}
	l.drop(c, true)
}

// dial starts to connect to one target. Without a free descriptor clients are reset
// to make room, which may also be this one. The ledger knows the connection before
// the kernel shows it.
func (l *Listener) dial(c *client, to netip.AddrPort) error {
	fd, err := stream(family(to))
	for scarce(err) && l.evict() && c.phase != free {
		fd, err = stream(family(to))
	}
	if err != nil {
		return err
	}
	c.target.fd = fd
	unix.SetsockoptInt(c.conn.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	err = l.ledger.enter(c.index, func() (Passed, error) { return connect(fd, to) })
	if err != nil {
		l.leaveTarget(c, false)
	}
	return err
}

// finishConnect begins to relay, or tries the next target.
func (l *Listener) finishConnect(c *client) {
	failed, err := unix.GetsockoptInt(c.target.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && failed == 0 {
		l.opens.Add(1)
		c.phase = relaying // the deadline for the first byte stays
		return
	}
	l.leaveTarget(c, false)
	c.try++
	l.connect(c)
}

// relay moves bytes between a client and its target. The arguments say which of the
// two may be ready.
func (l *Listener) relay(c *client, conn, target bool) {
	if c.phase == connecting && target {
		l.finishConnect(c)
		if c.phase == free {
			return
		}
	}
	if conn && c.up.wants() {
		if l.newRequest(c) {
			l.takeOver(c)
			return
		}
		if l.read(c, &c.up, c.conn.fd) {
			c.spoke, c.answered = true, false
		}
	}
	if target && c.phase == relaying && c.down.wants() && l.read(c, &c.down, c.target.fd) {
		c.answered = true
	}
	l.write(c)
}

// read reads one direction, and reports whether bytes came. The end of one
// direction limits the time for the other.
func (l *Listener) read(c *client, f *flow, fd int) bool {
	moved := f.read(fd)
	switch {
	case moved:
		l.touch(c)
	case f.eof && c.phase == relaying:
		c.deadline = l.now.Add(l.limits.begin)
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
	if c.up.cut() || c.down.cut() || c.up.shut && c.down.shut {
		l.drop(c, c.up.reset || c.down.reset)
	}
}

// newRequest reports whether the client is about to send a request after the stop
// began. EOF is not a request.
func (l *Listener) newRequest(c *client) bool {
	inProgress := c.spoke && !c.answered || !c.down.empty() || c.down.eof
	if l.during() == Pass || inProgress {
		return false
	}
	n, _, err := unix.Recvfrom(c.conn.fd, c.up.buffer()[:1], unix.MSG_PEEK)
	return err == nil && n > 0
}

// takeOver closes the connection to the target, and answers the client here.
func (l *Listener) takeOver(c *client) {
	if l.during() == Close {
		l.drop(c, true)
		return
	}
	l.leaveTarget(c, false)
	c.phase, c.deadline = asking, l.now.Add(l.limits.begin)
	c.up, c.down = c.up.renewed(), c.down.renewed()
	l.ask(c)
}
