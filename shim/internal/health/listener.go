package health

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// maxClients is how many clients are served at the same time.
const maxClients = 64

// clientSlots is one slot more: a new client is admitted first, and counts when the client
// to reset is chosen.
const clientSlots = maxClients + 1

// timeouts are the limits in time; see the package comment.
type timeouts struct {
	setup       time.Duration // to connect, for the first byte, the head of a request, the other half of a half-closed connection
	idle        time.Duration // between two bytes of a connection that is kept alive
	closing     time.Duration // for a client to read its answer
	acceptRetry time.Duration // before the next accept when descriptors are scarce
	protection  time.Duration // in which a request in progress is not reset for newcomers of its own network
}

var defaultTimeouts = timeouts{
	setup:       10 * time.Second,
	idle:        75 * time.Second,
	closing:     2 * time.Second,
	acceptRetry: time.Second,
	protection:  time.Second,
}

// The states of a Listener.
const (
	opened uint32 = iota
	serving
	closed
)

// Listener answers health checks. Open, SetMode and Close belong to one goroutine,
// Serve runs on another; Proxied and Opens may be called from any goroutine.
type Listener struct {
	targets  []netip.AddrPort // tried in order
	timeouts timeouts
	port     uint16
	inode    uint32

	wake    int // an eventfd(2), written when the mode or the state changes
	mode    atomic.Uint32
	state   atomic.Uint32
	done    chan struct{} // closed when Serve has returned
	proxied proxiedConns
	opens   atomic.Uint64

	loop
}

// loop is the part of a Listener that belongs to Serve.
type loop struct {
	listening   socket // until mode Close
	now         time.Time
	pausedUntil time.Time // no accept before
	clients     [clientSlots]client
	pollSet     []unix.PollFd
}

// active yields the clients, in the order of their slots.
func (l *loop) active() iter.Seq[*client] {
	return func(yield func(*client) bool) {
		for i := range l.clients {
			c := &l.clients[i]
			if c.phase != free && !yield(c) {
				return
			}
		}
	}
}

// Open returns a Listener that listens; Serve accepts. Only Open can fail.
func Open(s Spec) (*Listener, error) {
	if err := checkTarget(s.Target); err != nil {
		return nil, err
	}
	fd, err := listen(s.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", formatAddress(s.Listen), err)
	}
	l, err := newListener(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot listen on %s: %w", formatAddress(s.Listen), err)
	}
	l.targets = s.targets()
	return l, nil
}

// newListener returns a Listener without targets for a listening socket.
func newListener(fd int) (*Listener, error) {
	local, nameErr := localAddress(fd)
	var stat unix.Stat_t
	statErr := unix.Fstat(fd, &stat)
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err := errors.Join(nameErr, statErr, err); err != nil {
		return nil, err
	}
	l := &Listener{timeouts: defaultTimeouts, port: local.Port(), inode: uint32(stat.Ino), wake: wake, done: make(chan struct{})}
	l.listening = socket{fd: fd, pollIndex: -1}
	l.pollSet = make([]unix.PollFd, 0, 2*clientSlots+2)
	for i := range l.clients {
		l.clients[i].slot = i
		l.clients[i].clear()
	}
	return l, nil
}

// Port returns the port of the listening socket, also after Close.
func (l *Listener) Port() uint16 { return l.port }

// Inode returns the inode of the listening socket, as /proc shows the inode.
func (l *Listener) Inode() uint32 { return l.inode }

// SetMode sets how checks are treated, and returns before the change is made. A
// socket that mode Close has closed stays closed. After Close, SetMode does nothing.
func (l *Listener) SetMode(mode Mode) {
	if l.state.Load() != closed {
		l.mode.Store(uint32(mode))
		l.interrupt()
	}
}

func (l *Listener) currentMode() Mode { return Mode(l.mode.Load()) }

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

// Proxied appends to dst the connections to the target that were open at the given
// time or later. A caller that has seen sockets or destroy events, and then
// calls Proxied with the time of its previous call, gets all connections of the
// listener, however short, unless more than 512 were closed in between.
func (l *Listener) Proxied(dst []ProxiedConn, since time.Time) []ProxiedConn {
	return l.proxied.since(dst, since)
}

// Opens returns how many connections of the listener the kernel counts as passive
// opens: connections accepted here, and connections accepted by the target. The
// kernel counts each connection a moment earlier.
func (l *Listener) Opens() uint64 { return l.opens.Load() }

// interrupt ends the wait in Serve.
func (l *Listener) interrupt() { unix.Write(l.wake, []byte{0: 1, 7: 0}) }

// release closes every socket. The eventfd stays, since SetMode may still write to
// the eventfd.
func (l *Listener) release() {
	for c := range l.active() {
		l.drop(c, false)
	}
	l.stopListening()
}

func (l *Listener) stopListening() {
	closeSocket(l.listening.fd, false)
	l.listening = noSocket
}
