package health

import "golang.org/x/sys/unix"

// bufferLen is how many bytes are underway in one direction.
const bufferLen = 8 << 10

// flow is one direction of a relayed connection. Reading goes on when everything
// read before is written, so a reader that stops also stops the writer.
type flow struct {
	buf        []byte // made for the slot's first client, and kept
	start, end int    // buf[start:end] is yet to be written
	eof        bool   // there is nothing more to read
	shut       bool   // the end was passed on, or cannot be
	reset      bool   // the end was no FIN
}

// renewed returns the flow for the slot's next client.
func (f *flow) renewed() flow { return flow{buf: f.buf} }

// buffer returns the whole buffer.
func (f *flow) buffer() []byte {
	if f.buf == nil {
		f.buf = make([]byte, bufferLen)
	}
	return f.buf
}

func (f *flow) empty() bool { return f.start == f.end }

// wants reports whether to read.
func (f *flow) wants() bool { return !f.eof && f.empty() }

// cut reports whether the end is now to be passed on as a reset.
func (f *flow) cut() bool { return f.reset && !f.shut && f.empty() }

// read reads once, and reports whether bytes came.
func (f *flow) read(fd int) bool {
	n, err := unix.Read(fd, f.buffer())
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
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

// write writes what the socket takes, and passes on a FIN behind the last byte. It
// reports whether bytes were written. If the reader is gone, what is left for the
// reader is discarded; what the reader said earlier is still relayed.
func (f *flow) write(fd int) (moved bool) {
	for !f.empty() {
		n, err := send(fd, f.buf[f.start:f.end])
		if err == unix.EAGAIN {
			return moved
		}
		if err != nil {
			f.start, f.end = 0, 0
			f.eof, f.shut, f.reset = true, true, true
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
