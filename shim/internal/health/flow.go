package health

import "golang.org/x/sys/unix"

// bufferLen is how many bytes are on their way in one direction.
const bufferLen = 16 << 10

// flow is one direction of a connection that is passed through. It reads again
// when all that it read is written: who does not read makes the other wait.
type flow struct {
	buf        []byte // made for the slot's first client, and kept
	start, end int    // what is on its way
	eof        bool   // nothing more will be read
	shut       bool   // and the end was passed on, or cannot be
	reset      bool   // it ended otherwise than with a FIN
}

// renewed is the flow for the next client.
func (f *flow) renewed() flow { return flow{buf: f.buf} }

// buffer is the whole of it.
func (f *flow) buffer() []byte {
	if f.buf == nil {
		f.buf = make([]byte, bufferLen)
	}
	return f.buf
}

func (f *flow) empty() bool { return f.start == f.end }

// wants reports whether there is something to be read.
func (f *flow) wants() bool { return !f.eof && f.empty() }

// cut reports whether the end must be passed on as a reset, now.
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

// write writes what there is, and passes a FIN on behind it. It reports whether
// bytes went. Where the reader is gone, what was for it is thrown away; what it
// had said before may still be read.
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
		f.start, moved = f.start+n, true
	}
	if f.eof && !f.shut && !f.reset {
		unix.Shutdown(fd, unix.SHUT_WR)
		f.shut = true
	}
	return moved
}
