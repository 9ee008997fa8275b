package health

import (
	"errors"
	"fmt"
	"net/netip"
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
		answer, failure := p.Talk(to, netip.AddrPort{}, requestOf(r, r.Path)).exchange(deadline)
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

// askUnix is Ask for a Unix socket: the longest part of the path that is one.
func askUnix(r *check.Request, deadline time.Time) (status int, err error) {
	for end := len(r.Path); end > 0; end = strings.LastIndexByte(r.Path[:end], '/') {
		var stat unix.Stat_t
		if unix.Stat(r.Path[:end], &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFSOCK {
			path := "/" + strings.TrimPrefix(r.Path[end:], "/")
			return newTalk(requestOf(r, path), unix.AF_UNIX, &unix.SockaddrUnix{Name: r.Path[:end]}).exchange(deadline)
		}
	}
	return 0, unix.ECONNREFUSED
}

// requestOf returns a request for a path as it is sent.
func requestOf(r *check.Request, path string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: lameduck\r\nConnection: close\r\n"+
		"Content-Length: 0\r\n\r\n", r.Method, path, r.Host)
}

// closeTime is how long a server has to close the connection after its answer. A connection that is
// closed while bytes come would be reset.
const closeTime = time.Second

// exchange returns the status of the answer, and ends the connection.
func (t *Talk) exchange(deadline time.Time) (status int, err error) {
	defer t.Close(false)
	for status == 0 {
		var isWhole bool
		if _, err = t.Step(); err != nil {
			return 0, err
		}
		status, isWhole = statusOf(t.Answer())
		switch {
		case status > 0:
		case isWhole || t.connected && !t.down.canRead():
			return 0, errors.New("no answer in HTTP/1")
		case t.await(deadline):
		case t.connected:
			return 0, errors.New("no answer")
		default:
			return 0, errors.New("no connection")
		}
	}
	deadline = time.Now().Add(closeTime)
	for err == nil && !t.down.eof {
		t.down.end = 0 // else it may be full, and there is nothing to wait for
		if !t.await(deadline) {
			break
		}
		_, err = t.Step()
	}
	return status, nil
}

// statusOf returns the status of an answer of HTTP/1, after any interim answers, and whether its status
// line is whole; 0 if the line is none.
func statusOf(answer string) (status int, isWhole bool) {
	for {
		line, _, isWhole := strings.Cut(answer, "\n")
		status = 0
		if isWhole {
			_, _ = fmt.Sscanf(line, "HTTP/1.%d %d", new(int), &status)
		}
		if status/100 != 1 || status == 101 {
			return status, isWhole
		}
		_, answer, _ = strings.Cut(answer, "\r\n\r\n")
	}
}
