package health

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

// Ask sends a request, and returns the status of the answer, which may take the time limit. Ask takes
// a thread until the server has closed the connection, or for a second more. The error is
// ECONNREFUSED if nothing listens.
func (p *Conns) Ask(r *check.Request, limit time.Duration) (status int, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("a fault of lameduck's own, %v; please report it", fault)
		}
	}()
	deadline := time.Now().Add(limit)
	if r.Unix {
		return askUnix(r, deadline)
	}
	for i, to := range r.Targets() {
		answer, failure := p.askAt(r, to, deadline)
		if i > 0 && (failure == unix.EADDRNOTAVAIL || failure == unix.EAFNOSUPPORT) { // no IPv6: the first counts
			break
		}
		status, err = answer, failure
		if err != unix.ECONNREFUSED {
			break
		}
	}
	return status, err
}

func (p *Conns) askAt(r *check.Request, to netip.AddrPort, deadline time.Time) (status int, err error) {
	fd, err := newSocket(to)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	defer p.markClosed(fd)
	return exchange(fd, func() error { return p.connectTarget(fd, to) }, requestOf(r, r.Path), deadline)
}

// askUnix is Ask for a Unix socket: the longest part of the path that is one.
func askUnix(r *check.Request, deadline time.Time) (status int, err error) {
	for end := len(r.Path); end > 0; end = strings.LastIndexByte(r.Path[:end], '/') {
		var stat unix.Stat_t
		if unix.Stat(r.Path[:end], &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
			continue
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
		connect := func() error { return unix.Connect(fd, &unix.SockaddrUnix{Name: r.Path[:end]}) }
		path := "/" + strings.TrimPrefix(r.Path[end:], "/")
		return exchange(fd, connect, requestOf(r, path), deadline)
	}
	return 0, unix.ECONNREFUSED
}

// requestOf returns a request for a path as it is sent.
func requestOf(r *check.Request, path string) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: lameduck\r\nConnection: close\r\n"+
		"Content-Length: 0\r\n\r\n", r.Method, path, r.Host)
}

// closeTime is how long a server has to close the connection after its answer. A connection that is
// closed while bytes come would be reset.
const closeTime = time.Second

// exchange connects a socket, sends a request, and returns the status of the answer.
func exchange(fd int, connect func() error, request []byte, deadline time.Time) (status int, err error) {
	for err = connect(); err != nil; err = connect() {
		switch {
		case err != unix.EINPROGRESS && err != unix.EALREADY:
			return 0, err
		case !await(fd, false, true, deadline):
			return 0, errors.New("no connection")
		}
	}
	up := flow{buf: request, end: len(request)}
	down := flow{buf: make([]byte, bufferLen)}
	for status == 0 {
		up.write(fd)
		if _, err = down.read(fd); err != nil {
			return 0, err
		}
		var isWhole bool
		status, isWhole = statusOf(string(down.buf[:down.end]))
		switch {
		case status > 0:
		case isWhole || !down.canRead():
			return 0, errors.New("no answer in HTTP/1")
		case !await(fd, true, !up.isEmpty(), deadline):
			return 0, errors.New("no answer")
		}
	}
	deadline = time.Now().Add(closeTime)
	for err == nil && !down.eof && await(fd, true, false, deadline) {
		down.end = 0
		_, err = down.read(fd)
	}
	return status, nil
}

// statusOf returns the status of an answer of HTTP/1, after any interim answers, and whether its status
// line is whole; 0 if the line is none.
func statusOf(answer string) (status int, isWhole bool) {
	isInterim := false
	for line := range strings.Lines(answer) {
		words := strings.Fields(line)
		switch {
		case !strings.HasSuffix(line, "\n"):
			return 0, false
		case isInterim: // the rest of its head, up to an empty line
			isInterim = len(words) > 0
			continue
		case len(words) > 1 && strings.HasPrefix(words[0], "HTTP/1."):
			status, _ = strconv.Atoi(words[1])
		}
		isInterim = status/100 == 1 && status != 101
		if !isInterim {
			return status, true
		}
		status = 0
	}
	return 0, false
}

// await waits until a socket is ready, or a signal comes, and reports whether there was time left.
func await(fd int, in, out bool, deadline time.Time) bool {
	left := min(time.Until(deadline), time.Hour)
	if left > 0 {
		unix.Poll([]unix.PollFd{events(fd, in, out)}, int(left/time.Millisecond)+1)
	}
	return left > 0
}
