package health

import "golang.org/x/sys/unix"

// flowBufferLen is how many bytes one direction may have in transit.
const flowBufferLen = 8 << 10

// flow is one direction of a relayed connection. The next read waits until all
// bytes read before are written, so a receiver that stops also stops the sender.
type flow struct {
	buf   []byte // allocated for the slot's first client, and kept
	start int    // buf[start:end] is yet to be written
	end   int
	eof   bool // the sender has ended: no more reads
	shut  bool // the end was relayed, or cannot be
	reset bool // the sender ended by a reset, or the receiver is gone
}

// cleared returns the flow for the slot's next client.
func (f *flow) cleared() flow { return flow{buf: f.buf} }

// buffer returns the whole buffer.
func (f *flow) buffer() []byte {
	if f.buf == nil {
		f.buf = make([]byte, flowBufferLen)
	}
	return f.buf
}

func (f *flow) isEmpty() bool { return f.start == f.end }

// canRead reports whether the flow has room for a read.
func (f *flow) canRead() bool { return !f.eof && f.isEmpty() }

// resetDue reports whether the end is now to be relayed as a reset.
func (f *flow) resetDue() bool { return f.reset && !f.shut && f.isEmpty() }

// read reads once, and reports whether bytes came.
func (f *flow) read(fd int) bool {
	n, err := unix.Read(fd, f.buffer())
	switch {
	case wouldBlock(err):
		return false
	case err != nil:
		f.eof, f.reset = true, true
		return false
	case n == 0:
		f.eof = true
		return false
	}
	f.start, f.end = 0, n
	return true
}

// write writes as many bytes as the socket takes, and relays a FIN after the last
// byte. The result reports whether bytes were written. If the receiver is gone, the
// rest is discarded; the opposite flow goes on.
func (f *flow) write(fd int) (moved bool) {
	for !f.isEmpty() {
		n, err := send(fd, f.buf[f.start:f.end])
		if err == unix.EAGAIN {
			return moved
		}
		if err != nil {
			f.abandon()
			return moved
		}
		f.start += n
		moved = true
	}
	if f.eof && !f.shut && !f.reset {
		unix.Shutdown(fd, unix.SHUT_WR)
		f.shut = true
	}
	return moved
}

// abandon ends the flow without a receiver.
func (f *flow) abandon() {
	*f = f.cleared()
	f.eof = true
	f.shut = true
	f.reset = true
}
