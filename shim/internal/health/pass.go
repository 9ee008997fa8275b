package health

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// connect begins to connect to the first target that may take us. Where there is
// none the client is refused as we are.
func (l *Listener) connect(s *slot) {
	for ; s.try < len(l.targets); s.try++ {
		if l.dial(s, l.targets[s.try]) == nil {
			return
		}
	}
	l.drop(s, true)
}

func (l *Listener) dial(s *slot, to netip.AddrPort) (err error) {
	s.target, err = stream(family(to))
	for scarce(err) && l.evict(s) {
		s.target, err = stream(family(to))
	}
	if err != nil {
		return err
	}
	unix.SetsockoptInt(s.target, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	err = l.made.enter(s.index, func() (Passed, error) { return connect(s.target, to) })
	if err != nil {
		l.leave(s, false)
	}
	return err
}

// connected asks how the connecting ended.
func (l *Listener) connected(s *slot) {
	failed, err := unix.GetsockoptInt(s.target, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && failed == 0 {
		l.opens.Add(1)
		s.phase = passing // the time to begin goes on
		return
	}
	l.leave(s, false)
	s.try++
	l.connect(s)
}

// pass carries on what is passed through, after something was told of its ends.
func (l *Listener) pass(s *slot) {
	if s.phase == connecting && l.told(s.atTarget) {
		l.connected(s)
		if s.phase == free {
			return
		}
	}
	if l.told(s.atClient) && s.up.wants() {
		if l.turned(s) {
			l.turn(s)
			return
		}
		l.readUp(s)
	}
	if s.phase == passing && l.told(s.atTarget) && s.down.wants() {
		l.readDown(s)
	}
	l.write(s)
}

func (l *Listener) readUp(s *slot) {
	if s.up.read(s.client) {
		s.spoke, s.answered = true, false
		l.touch(s)
	} else if s.up.eof {
		l.halve(s)
	}
}

func (l *Listener) readDown(s *slot) {
	if s.down.read(s.target) {
		s.answered = true
		l.touch(s)
	} else if s.down.eof {
		l.halve(s)
	}
}

// halve limits what is half closed.
func (l *Listener) halve(s *slot) {
	if s.phase == passing {
		s.until = l.now.Add(l.limits.begin)
	}
}

// write writes what can be written, and drops what is over.
func (l *Listener) write(s *slot) {
	moved := s.down.write(s.client)
	if s.phase == passing {
		moved = s.up.write(s.target) || moved
	}
	if moved {
		l.touch(s)
	}
	if s.up.cut() || s.down.cut() || s.up.shut && s.down.shut {
		l.drop(s, s.up.reset || s.down.reset)
	}
}

// turned reports whether what the client says now is a new request, which is no
// longer to be passed on. That it will say no more is none.
func (l *Listener) turned(s *slot) bool {
	if l.during() == Pass || s.spoke && !s.answered || !s.down.empty() || s.down.eof {
		return false
	}
	n, _, err := unix.Recvfrom(s.client, s.up.buffer()[:1], unix.MSG_PEEK)
	return err == nil && n > 0
}

// turn takes the client away from the target.
func (l *Listener) turn(s *slot) {
	if l.during() == Close {
		l.drop(s, true)
		return
	}
	l.leave(s, false)
	s.phase, s.until = asking, l.now.Add(l.limits.begin)
	s.up, s.down = s.up.renewed(), s.down.renewed()
	l.ask(s)
}

// ask reads on in the head of a request, and answers it.
func (l *Listener) ask(s *slot) {
	head := &s.up
	n, err := unix.Read(s.client, head.buffer()[head.end:headLen])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return
	case err != nil:
		l.drop(s, true)
		return
	case n > 0:
		s.spoke, s.moved = true, l.now
	}
	head.end += n
	switch classify(head.buf[:head.end], n == 0) {
	case foreign:
		l.drop(s, head.end > 0) // who came to connect alone has done so
	case complete:
		l.reply(s, n == 0)
	}
}

// reply answers. The client may have said more than was read: to close now would
// reset the connection, and the answer with it.
func (l *Listener) reply(s *slot, over bool) {
	text := answer(l.during(), s.up.buf[:s.up.end])
	n, err := send(s.client, []byte(text))
	if err != nil || n < len(text) { // it has not even read what came before
		l.drop(s, true)
		return
	}
	if over {
		l.drop(s, false)
		return
	}
	unix.Shutdown(s.client, unix.SHUT_WR)
	s.phase, s.moved, s.until = lingering, l.now, l.now.Add(l.limits.linger)
}

// linger throws away what the client still says, until it has closed.
func (l *Listener) linger(s *slot) {
	n, err := unix.Read(s.client, s.up.buffer())
	if n > 0 || err == unix.EAGAIN || err == unix.EINTR {
		return
	}
	l.drop(s, false)
}
