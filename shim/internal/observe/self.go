package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// self leaves out the connections of the container to itself. Connections of a neighbor
// in the same pod count, so the socket at the other end decides. If that socket is gone,
// such as that of an exec probe, the connection is our own if both ends have one address and
// nothing of another container is seen in the network namespace.
type self struct {
	isSelf         map[uint64]bool // decisions, by cookie
	selfCandidates []tcp.Socket    // connections of the current sample without a decision
	selfAccepted   int             // connections to ourselves so far
	neighborSeen   bool            // a socket of another container was seen
	lookedAt       time.Time       // for such a socket, when last
}

// lookInterval is the time between two searches for a neighbor, which read the descriptors of all
// processes.
const lookInterval = time.Second

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

// excludesClosed reports whether a closed connection was a connection to ourselves. Of one
// too short for a sample, isSelf says whether it was.
func (f *self) excludesClosed(s *tcp.Socket, isSelf func(*tcp.Socket) bool) bool {
	decision, decided := f.isSelf[s.Cookie] // then counted by decide
	switch {
	case !mayBeSelf(s):
		return false
	case decided:
		return decision
	case isSelf(s):
		f.selfAccepted++
		return true
	}
	return false
}

// isShort reports whether a connection whose other end is gone was to ourselves.
func (o *observer) isShort(near *tcp.Socket) bool {
	return near.Local.Addr() == near.Remote.Addr() && o.alone(time.Now())
}

// alone reports whether nothing of another container has been seen in the network namespace. A
// socket that was closed while descriptors were read belongs to nobody: two looks decide.
func (o *observer) alone(now time.Time) bool {
	f := &o.self
	if f.neighborSeen || now.Sub(f.lookedAt) < lookInterval {
		return !f.neighborSeen
	}
	f.lookedAt = now
	first, err := scope.Foreign(o.late.query, o.source.everyInode)
	if err == nil && len(first) == 0 {
		return true
	}
	second, secondErr := scope.Foreign(o.late.query, o.source.everyInode)
	isIn := func(inode uint32) bool { return slices.Contains(first, inode) }
	f.neighborSeen = cmp.Or(err, secondErr) != nil || slices.ContainsFunc(second, isIn)
	return !f.neighborSeen
}

// limit forgets all decisions if decisions outnumber sockets by far.
func (f *self) limit(sockets int) {
	if len(f.isSelf) > 2*(sockets+manySockets) {
		clear(f.isSelf)
	}
}
