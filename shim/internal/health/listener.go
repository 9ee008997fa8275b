package health

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// maxClients is how many clients there may be at one time.
const maxClients = 64

// clientSlots has room for one client more: a new client is admitted first, and
// counts when the client to reset is chosen.
const clientSlots = maxClients + 1

// limits are how long things may take.
type limits struct {
	begin  time.Duration // connecting, the first byte, the head of a request, the other half of a half-closed connection
	idle   time.Duration // between two bytes of a connection that is kept alive
	linger time.Duration // for a client to read its answer
	pause  time.Duration // before the next accept where descriptors are scarce
	tenure time.Duration // in which a request in progress is safe from newcomers of its own network
}

var usual = limits{begin: 10 * time.Second, idle: 75 * time.Second, linger: 2 * time.Second, pause: time.Second, tenure: time.Second}

// The states of a listener.
const (
	opened uint32 = iota
	serving
	closed
)

// Listener answers health checks. Open, Stop and Close belong to one goroutine,
// Serve runs on another; Outgoing and Opens may be called from any.
type Listener struct {
	targets []netip.AddrPort // tried in this order
	limits  limits
	port    uint16
	inode   uint32

	wake   int // an eventfd(2), written when the mode or the state changes
	mode   atomic.Uint32
	state  atomic.Uint32
	done   chan struct{}
	ledger ledger
	opens  atomic.Uint64

	loop
}

// loop is the part of a Listener that belongs to Serve.
type loop struct {
	accepting   end // the listening socket, until Close
	now         time.Time
	pausedUntil time.Time // no accept before
	clients     [clientSlots]client
	pollSet     []unix.PollFd
}

// Open listens. Only Open can fail.
func Open(s Spec) (*Listener, error) {
	if err := checkTarget(s.Target); err != nil {
		return nil, err
	}
	fd, err := listen(s.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", portOrAddress(s.Listen), err)
	}
	local, nameErr := localAddress(fd)
	var stat unix.Stat_t
	statErr := unix.Fstat(fd, &stat)
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err := errors.Join(nameErr, statErr, err); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot listen on %s: %w", portOrAddress(s.Listen), err)
	}
	l := &Listener{targets: s.targets(), limits: usual, port: local.Port(), inode: uint32(stat.Ino), wake: wake, done: make(chan struct{})}
	l.accepting = end{fd: fd, polled: -1}
	l.pollSet = make([]unix.PollFd, 0, 2*clientSlots+2)
	for i := range l.clients {
		l.clients[i].index = i
		l.clients[i] = l.clients[i].empty()
	}
	return l, nil
}

// Port returns the port of the listening socket, also after Close.
func (l *Listener) Port() uint16 { return l.port }

// Inode returns the listening socket's inode, as /proc shows it.
func (l *Listener) Inode() uint32 { return l.inode }

// Stop sets what becomes of checks, and returns before the change is made. What the
// mode Close has closed stays closed. After Close, Stop does nothing.
func (l *Listener) Stop(during Mode) {
	if l.state.Load() != closed {
		l.mode.Store(uint32(during))
		l.interrupt()
	}
}

// Close ends Serve, and returns when every connection is closed.
func (l *Listener) Close() {
	switch l.state.Swap(closed) {
	case opened:
		l.release()
	case serving:
		l.interrupt()
		<-l.done
	case closed:
		return
	}
	unix.Close(l.wake)
}

// Outgoing appends to dst the connections to the target that were open at that
// time or later. A caller that has seen sockets in the kernel, or heard of their
// end, and then asks with the time of its previous call finds all of the
// listener's, however short, unless there were more than 512 in between.
func (l *Listener) Outgoing(dst []Passed, since time.Time) []Passed {
	return l.ledger.since(dst, since)
}

// Opens returns how many connections there were that the kernel counts as passive
// opens: those accepted here, and those accepted by the target. The kernel counts
// each a moment earlier.
func (l *Listener) Opens() uint64 { return l.opens.Load() }

// interrupt ends the wait in Serve.
func (l *Listener) interrupt() { unix.Write(l.wake, []byte{0: 1, 7: 0}) }

// release closes every socket. The eventfd stays, since Stop may still write to it.
func (l *Listener) release() {
	for i := range l.clients {
		if l.clients[i].phase != free {
			l.drop(&l.clients[i], false)
		}
	}
	if l.accepting.fd >= 0 {
		unix.Close(l.accepting.fd)
		l.accepting = noEnd
	}
}
