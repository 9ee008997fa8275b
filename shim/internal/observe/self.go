package observe

import (
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// self leaves out the connections of the container to itself. Connections of a neighbor
// in the same pod count, so the socket at the other end decides.
type self struct {
	isSelf         map[uint64]bool // decisions, by cookie
	selfCandidates []tcp.Socket    // connections of the current sample without a decision
	selfAccepted   int             // connections to ourselves so far
}

// mayBeSelf reports whether both ends of a connection are on this machine.
func mayBeSelf(s *tcp.Socket) bool {
	return s.State != tcp.Listen && (s.Remote.Addr().IsLoopback() || s.Remote.Addr() == s.Local.Addr())
}

func (f *self) beginSample() { f.selfCandidates = f.selfCandidates[:0] }

// excludes reports whether a connection is not to be observed now: either a connection to
// ourselves, or a candidate for decide.
func (f *self) excludes(s *tcp.Socket) bool {
	if !mayBeSelf(s) {
		return false
	}
	isSelf, decided := f.isSelf[s.Cookie]
	if !decided {
		f.selfCandidates = append(f.selfCandidates, *s)
	}
	return isSelf || !decided
}

// decide observes the candidates that are not connections to ourselves. A decision of
// judge that is final holds for later samples too.
func (f *self) decide(judge func(near *tcp.Socket) (isSelf, final bool), observe func(*tcp.Socket)) {
	for i := range f.selfCandidates {
		near := &f.selfCandidates[i]
		isSelf, final := judge(near)
		if isSelf {
			f.selfAccepted++
		} else {
			observe(near)
		}
		if final && near.Cookie != 0 {
			f.isSelf[near.Cookie] = isSelf
		}
	}
}

// excludesClosed reports whether a closed connection was a connection to ourselves. A
// connection too short for a sample can only be known as a proxied connection.
func (f *self) excludesClosed(s *tcp.Socket, isProxied func(*tcp.Socket) bool) bool {
	switch {
	case !mayBeSelf(s):
		return false
	case f.isSelf[s.Cookie]: // counted by decide
		return true
	case isProxied(s):
		f.selfAccepted++
		return true
	}
	return false
}

// limit forgets all decisions if decisions outnumber sockets by far.
func (f *self) limit(sockets int) {
	if len(f.isSelf) > 2*(sockets+manySockets) {
		clear(f.isSelf)
	}
}
