package observe

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// question asks a server of kept connections what it speaks: whether HTTP/2, and then whether that alone,
// on two connections of lameduck's own, from the server's own address: an address that is not of this
// machine cannot be asked. A step waits for nothing.
type question struct {
	server      *letgo.Server
	found       letgo.Answer
	http2, talk *health.Talk // the first, if the second is under way; and that which is
	until       time.Time    // of talk
}

// answerTime is how long a server has to answer.
const answerTime = time.Second

// askServers asks the servers of kept connections, each once, and hands on their answers. Before, it tries
// whether the kernel lets lameduck do anything with their connections.
func (s *Sampler) askServers(now time.Time) {
	for _, server := range s.asker.TakeUnknown() {
		_, err := s.closer.Ask(&server.Known.Socket, "", func(*tcp.Socket) bool { return false })
		if err != nil {
			s.snapshot.CloseTrouble = err.Error()
			return
		}
		if !s.slowed.Load() {
			s.questions = append(s.questions, &question{server: server})
		}
	}
	s.questions = slices.DeleteFunc(s.questions, func(q *question) bool {
		done := s.step(q, now)
		if done {
			s.asker.NoteAnswer(q.server, q.found)
		}
		return done
	})
}

// step goes on with a question.
func (s *Sampler) step(q *question, now time.Time) (done bool) {
	found := &q.found
	request, is := letgo.Preface, letgo.IsHTTP2
	if found.HTTP2 {
		request, is = letgo.Options, letgo.IsHTTP1
	}
	if q.talk == nil {
		q.talk = s.cfg.Own.Talk(q.server.At, netip.AddrPortFrom(q.server.At.Addr(), 0), request)
		q.until = now.Add(answerTime)
	}
	_, err := q.talk.Step()
	answer := q.talk.Answer()
	yes, isCertain := is(answer)
	isLate := now.After(q.until) || s.slowed.Load() // a server that stops waits for the connection
	switch {
	case !isCertain && err == nil && !q.talk.IsOver() && !isLate:
		return false
	case yes && !found.HTTP2:
		found.HTTP2, q.http2, q.talk = true, q.talk, nil
		return false
	case found.HTTP2:
		found.HTTP1, found.Alone = yes, !yes && !(isLate && answer == "")
		found.Relay = s.observer.relays(q.http2.FD)
		q.http2.Close(false)
	case answer != "":
		found.Else = fmt.Sprintf("%.24q", answer)
	case err != nil:
		found.Else = err.Error()
	case isLate:
		found.Else = "no answer"
	default:
		found.Else = "closes the connection"
	}
	q.talk.Close(false)
	return true
}

// relays reports whether the server at the other end of a connection of ours copies bytes. Then another
// connection of the network namespace, the server's own, has received as much as ours, and has sent as
// much, but for a header before (the PROXY protocol's).
func (o *Observer) relays(fd int) bool {
	const maxHeader = 536
	ours, _ := sockdiag.ReadSocket(fd)
	sent := ours.Info.Sent - ours.Info.Resent
	var twins []tcp.Socket // those of others are connections of another lameduck, in another container of the pod
	err := o.source.each(openStates, nil, func(s *tcp.Socket) {
		header := s.Info.Sent - s.Info.Resent - sent
		if s.Info.Received == ours.Info.Received && header <= maxHeader && s.Cookie != ours.Cookie {
			twins = append(twins, *s)
		}
	})
	if len(twins) > 0 && o.scope.Method != scope.Namespace {
		o.learnHeld()
		twins = slices.DeleteFunc(twins, func(s tcp.Socket) bool { return !o.scope.Owns(&s) })
	}
	return len(twins) > 0 || err != nil
}
