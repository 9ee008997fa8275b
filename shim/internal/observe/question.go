package observe

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// question asks a server of kept connections what it speaks: whether HTTP/2, and then whether that alone,
// on two connections of lameduck's own, from the server's own address: an address that is not of this
// machine cannot be asked. A step waits for nothing.
type question struct {
	server *letgo.Server
	http2  *health.Talk
	http1  *health.Talk // begins when the server has answered as HTTP/2 does
	until  time.Time    // of the latest talk
}

// answerTime is how long a server has to answer.
const answerTime = time.Second

// askServers asks the servers of kept connections, each once, and hands on their answers. Before, it tries
// whether the kernel lets lameduck do anything with a connection.
func (s *Sampler) askServers(now time.Time) {
	if k := s.asker.Accepted(); k != nil && !s.permitted && s.snapshot.CloseTrouble == "" {
		_, err := s.closer.Ask(k.Inode, k.Cookie, nil, func(*tcp.Socket) bool {
			s.permitted = true
			return false
		})
		if err != nil {
			s.snapshot.CloseTrouble = err.Error()
		}
	}
	if !s.permitted {
		return
	}
	for _, server := range s.asker.Unasked() {
		s.questions = append(s.questions, &question{server: server})
	}
	s.questions = slices.DeleteFunc(s.questions, func(q *question) bool {
		answer, done := s.step(q, now)
		if done {
			s.asker.NoteAnswer(q.server, answer)
		}
		return done
	})
}

// step goes on with a question.
func (s *Sampler) step(q *question, now time.Time) (answer letgo.Answer, done bool) {
	if q.http2 == nil {
		err := s.talk(q, &q.http2, letgo.Preface, now)
		return letgo.Answer{Else: fmt.Sprint(err)}, err != nil
	}
	if q.http1 == nil {
		isHTTP2, other := hear(q.http2, letgo.IsHTTP2, now.After(q.until))
		switch {
		case isHTTP2:
			done = s.talk(q, &q.http1, letgo.Options, now) != nil
			answer.HTTP2 = true
		case other != "":
			q.http2.End(nil)
			return letgo.Answer{Else: other}, true
		}
		return answer, done
	}
	isHTTP1, other := hear(q.http1, letgo.IsHTTP1, now.After(q.until))
	if !isHTTP1 && other == "" {
		return answer, false
	}
	answer = letgo.Answer{
		HTTP2: true, HTTP1: isHTTP1, Alone: other != "" && other != silent, Relay: s.observer.relays(q.http2.FD()),
	}
	q.http1.End(nil)
	q.http2.End(letgo.Leave)
	return answer, true
}

// talk begins a talk.
func (s *Sampler) talk(q *question, t **health.Talk, request []byte, now time.Time) (err error) {
	q.until = now.Add(answerTime)
	*t, err = s.cfg.Own.Talk(q.server.At, netip.AddrPortFrom(q.server.At.Addr(), 0), request)
	return err
}

// silent is what is said of a server that does not answer in time.
const silent = "no answer"

// hear reports whether a server has answered as a protocol has it, or what else has come of the talk; ""
// as long as that is not clear.
func hear(t *health.Talk, is func(answer []byte) (is, isCertain bool), isLate bool) (yes bool, other string) {
	err := t.Step()
	answer := t.Answer()
	yes, isCertain := is(answer)
	switch {
	case yes && isCertain:
		return true, ""
	case len(answer) > 0 && (isCertain || isLate || err != nil || t.IsOver()):
		return false, fmt.Sprintf("%.24q", answer)
	case err != nil:
		return false, err.Error()
	case t.IsOver():
		return false, "closes the connection"
	case isLate:
		return false, silent
	}
	return false, ""
}

// relays reports whether the server at the other end of a connection of ours copies bytes. Then another
// connection of the network namespace, the server's own, has received as much as ours, and has sent as
// much, but for a header before (the PROXY protocol's).
func (o *Observer) relays(fd int) (relays bool) {
	const maxHeader = 536
	ours, err := sockdiag.ReadSocket(fd)
	if err == nil {
		err = o.source.each(sockdiag.Query{States: openStates, Info: true}, func(s *tcp.Socket) {
			more := s.Info.Sent - s.Info.Resent - (ours.Info.Sent - ours.Info.Resent)
			isTwin := s.Info.Received == ours.Info.Received && more <= maxHeader && s.Cookie != ours.Cookie
			relays = relays || isTwin
		})
	}
	return relays || err != nil
}
