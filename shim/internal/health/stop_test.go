package health

import (
	"io"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

// TestNextRequest: at a stop the app answers a request in progress, in two pieces. The next request on
// the connection, which may be its first, is not relayed.
func TestNextRequest(t *testing.T) {
	for _, mode := range []check.Mode{check.Fail, check.Close} {
		for _, inProgress := range []bool{true, false} {
			l, client, server := relayed(t)
			if inProgress {
				transfer(t, client, server, request)
			}
			l.SetMode(mode)
			if inProgress {
				transfer(t, server, client, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
				transfer(t, server, client, "fine")
			}
			io.WriteString(client, request)
			if mode == check.Fail {
				wantText(t, client, stopping)
			} else {
				wantReset(t, client)
			}
			wantEnd(t, server)
		}
	}
}

// TestLimits: which limit applies to a client, before and during a stop.
func TestLimits(t *testing.T) {
	l, _, _ := relayed(t)
	l.stop()
	const greeting, request, kept, end = 1, 2, 3, 4
	l.limits = limits{greeting: greeting, request: request, kept: kept, end: end}
	none, relayed := Talk{FD: -1}, Talk{connected: true}
	for _, c := range []struct {
		state        client
		before, stop time.Duration
	}{
		{client{target: none}, greeting, request},
		{client{}, request, request},
		{client{target: relayed}, request, request},
		{client{target: relayed, last: theClient}, kept, request},
		{client{target: relayed, last: theCommand}, kept, end},
		{client{target: none, answered: true}, end, end},
	} {
		for mode, want := range []time.Duration{check.Pass: c.before, check.Fail: c.stop} {
			l.SetMode(check.Mode(mode))
			if got := l.limit(&c.state); got != want {
				t.Errorf("%+v in mode %v: limit %d, want %d", c.state, l.currentMode(), got, want)
			}
		}
	}
}

// TestEnds: at a stop a relayed connection that the client keeps is ended, and the time of a relayed request
// is bounded, whatever the client sends meanwhile.
func TestEnds(t *testing.T) {
	for _, isAnswered := range []bool{true, false} {
		l, client, server := relayed(t)
		transfer(t, client, server, request)
		wantEnded := wantReset
		if isAnswered {
			transfer(t, server, client, "answer")
			wantEnded = wantEnd
		}
		l.SetMode(check.Fail)
		begin := time.Now()
		if !isAnswered {
			transfer(t, client, server, "more")
		}
		l.stop()
		if l.clients[0].lastByte.After(begin) {
			t.Error("a byte has prolonged the client's time")
		}
		l.limits.end, l.limits.request = -time.Hour, -time.Hour // have passed
		l.prepare()
		wantEnded(t, client)
		wantEnded(t, server)
	}
}
