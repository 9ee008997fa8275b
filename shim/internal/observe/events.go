package observe

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// burstThreshold is how many events since the latest sample do not make a burst. Without
// CAP_NET_ADMIN the kernel's buffer has room for some 300 events.
const burstThreshold = 30

// maxClosed is how many closed connections are kept between two samples, each in some hundred bytes.
const maxClosed = 20_000

// burstInterval is how often events are read in a burst.
const burstInterval = 25 * time.Millisecond

// eventReader is a sockdiag.Events. Tests have another.
type eventReader interface {
	Read(visit func(*tcp.Socket)) (missed bool)
	SetPorts(ports tcp.Ports) error
	FD() int
	Close() error
}

// events collects the connections that close between samples, from the destroy groups of
// sock_diag(7).
type events struct {
	reader   eventReader // nil: no events
	closed   []closed    // since the latest sample
	missedAt time.Time   // when events were missed since the latest sample; zero: none
}

// closed is a closed socket as the kernel last knew it.
type closed struct {
	socket tcp.Socket
	at     time.Time // when the event was read
}

// setPorts reads events of sockets with these local ports from now on, if the kernel has any.
// Events that are queued already are kept.
func (e *events) setPorts(ports tcp.Ports) {
	if e.reader != nil {
		if e.reader.SetPorts(ports) != nil {
			e.leave()
		}
		return
	}
	reader, err := sockdiag.OpenEvents(ports)
	if err == nil {
		e.reader = reader
	}
}

// read collects the events that have arrived.
func (e *events) read(now time.Time) {
	if e.reader == nil {
		return
	}
	missed := e.reader.Read(func(s *tcp.Socket) {
		if len(e.closed) < maxClosed {
			e.closed = append(e.closed, closed{*s, now})
		}
	})
	if missed || len(e.closed) == maxClosed {
		e.missedAt = now
	}
}

// bursting reports whether events are too many to be read one by one.
func (e *events) bursting() bool { return len(e.closed) > burstThreshold || !e.missedAt.IsZero() }

// endSample returns what was missed since the sample before, and forgets what was collected.
func (e *events) endSample() (missedAt time.Time) {
	missedAt = e.missedAt
	e.closed = e.closed[:0]
	e.missedAt = time.Time{}
	return missedAt
}

// wait sleeps until the next sample and reads events as they arrive, or every
// burstInterval when more than burstThreshold came since the latest sample: ppoll(2) does both.
func (e *events) wait(until time.Time) {
	for left := time.Until(until); left > 0; left = time.Until(until) {
		var arrival []unix.PollFd
		switch {
		case e.reader == nil:
		case e.bursting():
			left = min(left, burstInterval)
		default:
			arrival = []unix.PollFd{{Fd: int32(e.reader.FD()), Events: unix.POLLIN}}
		}
		limit := unix.NsecToTimespec(int64(left))
		unix.Ppoll(arrival, &limit, nil)
		e.read(time.Now())
	}
}

// leave leaves the destroy groups.
func (e *events) leave() {
	if e.reader != nil {
		e.reader.Close()
		e.reader = nil
	}
}
