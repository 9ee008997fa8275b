package health

import "golang.org/x/sys/unix"

// bufferLen is how many bytes one direction may have in transit, and how many bytes of
// a request are read before it is answered anyway.
const bufferLen = 8 << 10

// flow is one direction of a connection. A receiver that stops also stops the sender,
// when the buffer is full.
type flow struct {
	buf  []byte
	end  int  // buf[:end] is yet to be written
	eof  bool // the sender has ended: no more reads
	shut bool // the end was relayed, or the receiver is gone
}

func (f *flow) canRead() bool { return !f.eof && f.end < len(f.buf) }

// read reads once, if there is room. The result is 0 at the end, and if no byte is ready.
func (f *flow) read(fd int) (n int, err error) {
	if !f.canRead() {
		return 0, nil
	}
	n, err = unix.Read(fd, f.buf[f.end:])
	if err == unix.EAGAIN {
		return 0, nil
	}
	if err == nil {
		f.eof = n == 0
		f.end += n
	}
	return n, err
}

// write writes as many bytes as the socket takes, and relays a FIN after the last
// byte. If the receiver is gone, the rest is discarded; the opposite flow goes on.
func (f *flow) write(fd int) {
	if f.end > 0 {
		n, err := unix.SendmsgN(fd, f.buf[:f.end], nil, nil, unix.MSG_NOSIGNAL)
		f.end = copy(f.buf, f.buf[n:f.end])
		if err != nil && err != unix.EAGAIN {
			f.eof = true
			f.discard()
		}
	}
	if f.end == 0 {
		if f.eof && !f.shut {
			unix.Shutdown(fd, unix.SHUT_WR)
		}
		f.discard()
	}
}

// discard empties the buffer. Nobody waits for the end any more.
func (f *flow) discard() {
	f.end = 0
	f.shut = f.eof
}
