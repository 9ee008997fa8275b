package health

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// slots is how many clients there may be at one time.
const slots = 32

// limits are how long things may take.
type limits struct {
	begin  time.Duration // to connect, to say a first byte, to ask, to end what is half closed
	idle   time.Duration // without a byte, on a connection that is kept alive
	linger time.Duration // for a client to read its answer
	pause  time.Duration // before another look where descriptors are scarce
}

var usual = limits{begin: 10 * time.Second, idle: 75 * time.Second, linger: 2 * time.Second, pause: time.Second}

// The life of a listener.
const (
	opened uint32 = iota
	serving
	closed
)

// Listener answers health checks. Open, Stop and Close belong to one goroutine,
// Serve runs on another; Outgoing and Opens may be called from any.
type Listener struct {
	targets []netip.AddrPort // to be tried in this order
	limits  limits
	port    uint16
	inode   uint32

	wake  int // an eventfd(2): the mode, or the state, is another
	mode  atomic.Uint32
	state atomic.Uint32
	done  chan struct{}
	made  ledger
	opens atomic.Uint64

	// What is below belongs to Serve.
	fd     int // -1 when closed
	now    time.Time
	paused time.Time // no accept before
	slots  [slots]slot
	polled []unix.PollFd
	at     int // of the listening socket in polled
}

// Open listens, which is all that can fail.
func Open(s Spec) (*Listener, error) {
	if err := ours(s.Target); err != nil {
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
	l := &Listener{
		targets: s.targets(), limits: usual, port: local.Port(), inode: uint32(stat.Ino),
		wake: wake, done: make(chan struct{}), fd: fd, polled: make([]unix.PollFd, 0, 2*slots+2),
	}
	for i := range l.slots {
		l.slots[i] = slot{index: i, client: -1, target: -1, atClient: -1, atTarget: -1}
	}
	return l, nil
}

// Port is the one that it listens on, or did.
func (l *Listener) Port() uint16 { return l.port }

// Inode is the listening socket's, as /proc shows it.
func (l *Listener) Inode() uint32 { return l.inode }

// Stop changes, in a moment, what becomes of checks. What Close has closed stays
// so. When the listener is closed it does nothing.
func (l *Listener) Stop(during Mode) {
	if l.state.Load() != closed {
		l.mode.Store(uint32(during))
		l.poke()
	}
}

// Close ends all of it, and returns when nothing is left open.
func (l *Listener) Close() {
	switch l.state.Swap(closed) {
	case opened:
		l.release()
	case serving:
		l.poke()
		<-l.done
	case closed:
		return
	}
	unix.Close(l.wake)
}

// Outgoing appends to dst the connections to the target that were open at that
// time or later. Who has seen sockets in the kernel, or heard that they are gone,
// and asks afterwards since when it last did, finds all of ours, however short,
// unless there were more than 512 in between.
func (l *Listener) Outgoing(dst []Passed, since time.Time) []Passed {
	return l.made.since(dst, since)
}

// Opens is how many connections there were that the kernel counts as passive opens:
// those that were accepted here, and those that the target has accepted. The kernel
// counts each a moment before.
func (l *Listener) Opens() uint64 { return l.opens.Load() }

// poke ends the wait in Serve.
func (l *Listener) poke() { unix.Write(l.wake, []byte{0: 1, 7: 0}) }

// release closes all but what Stop writes to.
func (l *Listener) release() {
	for i := range l.slots {
		if l.slots[i].phase != free {
			l.drop(&l.slots[i], false)
		}
	}
	if l.fd >= 0 {
		unix.Close(l.fd)
		l.fd = -1
	}
}
