package health

import (
	"io"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
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

// TestClose: in mode Close the kernel refuses connections.
func TestClose(t *testing.T) {
	l := open(t, own)
	l.start(t)
	l.SetMode(check.Close)
	testutil.Eventually(t, "connections are refused", func() bool { return refuses(l.addr) })
}

// TestLimits: which limit applies to a client, before and during a stop.
func TestLimits(t *testing.T) {
	l, _, _ := relayed(t)
	l.stop()
	l.limits = limits{greeting: 1, silence: 2, end: 3}
	names := []string{1: "greeting", "silence", "end"}
	senders := map[string]sender{"client": theClient, "command": theCommand, "listener": theListener}
	for _, cells := range tables.Rows(`
		# the connection to the target | who sent the last byte | the limit before a stop | during it
		none    |          | greeting | silence
		not yet |          | silence  | silence
		relayed |          | silence  | silence
		relayed | client   | silence  | silence
		relayed | command  | silence  | end
		none    | listener | end      | end
	`) {
		c := client{last: senders[cells[1]]}
		c.target.connected = cells[0] == "relayed"
		if cells[0] == "none" {
			c.target.FD = -1
		}
		for mode, want := range []string{check.Pass: cells[2], check.Fail: cells[3]} {
			l.SetMode(check.Mode(mode))
			if got := names[l.limit(&c)]; got != want {
				t.Errorf("%q in mode %v: limit %s, want %s", cells, l.currentMode(), got, want)
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
		l.limits.end, l.limits.silence = -time.Hour, -time.Hour // have passed
		l.prepare()
		wantEnded(t, client)
		wantEnded(t, server)
	}
}
