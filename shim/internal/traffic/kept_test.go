package traffic

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

func kept(v Verdict) bool { return v.Kept }

// pool returns connections of two peers, older than the trigger, with a request of varying
// size and a response every 0.7 s or so up to a time in seconds.
func pool(n int, until float64) (list []life) {
	for i := range n {
		l := life{peer: fmt.Sprintf("10.0.3.%d", i%2), open: s(-60), moves: []move{{s(-60), 500}, {s(-59), -500}}}
		size := 100 + i
		for at := -5 + 0.1*float64(i); at < until; at += 0.6 + float64(size%7)/20 {
			l.moves = append(l.moves, move{s(at), size}, move{s(at + 0.005), -300})
			size += 13
		}
		list = append(list, l)
	}
	return list
}

// with returns the connections of several lists.
func with(lists ...[]life) (all []life) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// asking returns a kept connection with a request at a time, in seconds, and a response.
func asking(at, response float64) []life {
	return []life{{open: s(-60), moves: []move{{s(-60), 500}, {s(-59), -500}, {s(at), 100}, {s(response), -200}}}}
}

// pair returns two short connections, of different sizes, at a time in seconds.
func pair(at float64) []life {
	return []life{
		{open: s(at), close: s(at + 0.02), moves: []move{{s(at), int(700 + at)}, {s(at + 0.01), -200}}},
		{open: s(at + 0.1), close: s(at + 0.12), moves: []move{{s(at + 0.1), int(80 + at)}, {s(at + 0.11), -200}}},
	}
}

// TestKept: when clients that never let go are all that remains. QuietFor is 3 s, so that a
// pool alone remains after 24 s.
func TestKept(t *testing.T) {
	clients := pool(6, 70)
	download := life{open: s(1), moves: []move{{s(1), 9}}}
	for at := 1.1; at < 50; at += 0.1 {
		download.moves = append(download.moves, move{s(at), -1000})
	}
	fresh := func(l life) life { l.open = s(2); l.moves = l.moves[2:]; return l }
	for name, c := range map[string]struct {
		world
		want time.Duration // up to two intervals more are as good
	}{
		"a pool":                             {world{lives: clients}, s(24)},
		"a pool, by events":                  {world{lives: clients, events: true}, s(24)},
		"a single client":                    {world{lives: pool(1, 70)}, s(24)},
		"no traffic":                         {world{lives: []life{answered(-5)}}, never},
		"a pool that lets go":                {world{lives: pool(6, 8)}, never},
		"new connections for a while":        {world{lives: with(clients, every(s(0.3), 0, s(6), request)), events: true}, s(29.7)},
		"new connections, no events":         {world{lives: with(clients, every(s(0.3), 0, s(6), request))}, s(28.5)},
		"new connections to the end":         {world{lives: with(clients, differing(200, 60)), events: true}, never},
		"a new connection now and then":      {world{lives: with(clients, every(s(4), s(1), s(60), request)), events: true}, s(24)},
		"two new connections now and then":   {world{lives: with(clients, pair(5), pair(14), pair(23), pair(32), pair(41), pair(50)), events: true}, never},
		"a pool that was opened at the stop": {world{lives: []life{fresh(clients[0]), fresh(clients[1])}}, s(26)},
		"a probe every 10 s":                 {world{lives: with(clients, probing(10)), events: true}, s(24)},
		"a probe every second":               {world{lives: with(clients, probing(1)), events: true}, s(31)},
		"a probe every second that counts":   {world{lives: with(clients, probing(1)), events: true, Config: Config{Probes: CountProbes}}, never},
		"a download":                         {world{lives: with(clients, []life{download})}, s(24)},
		"a slow request":                     {world{lives: with(clients, asking(20, 29))}, s(29)},
		"a request that is not slow":         {world{lives: with(clients, asking(23.5, 24.3))}, s(24)},
		"a request beyond MaxSilence":        {world{lives: with(clients, asking(1, 70)), Config: Config{MaxSilence: s(28)}}, s(29)},
		"half-open connections":              {world{lives: with(clients, []life{{open: s(1), state: tcp.SynRecv}})}, s(24)},
		"a connection without a byte":        {world{lives: with(clients, []life{{open: s(6)}, {open: s(7)}})}, s(24)},
		"a queue for a while":                {world{lives: clients, queue: func(now time.Duration) uint32 { return uint32(max(0, 4-now/s(1))) }}, s(27.75)},
		"no tcp_info":                        {world{lives: []life{withoutInfo(clients[0]), clients[1]}}, never},
		"incomplete samples":                 {world{lives: clients, incomplete: func(time.Duration) bool { return true }}, never},
	} {
		got, _ := c.until(never, kept)
		if got < c.want || got > c.want+2*s(0.25) && c.want != never {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestKeptMissed: connections that may have been missed are new connections, in a flood or
// after a change of the source.
func TestKeptMissed(t *testing.T) {
	for name, c := range map[string]struct {
		rest func(now time.Duration) Rest
		want time.Duration
	}{
		"nothing missed":  {func(time.Duration) Rest { return Rest{} }, s(24)},
		"missed for 6 s":  {func(now time.Duration) Rest { return missed(now, now <= s(6)) }, s(30)},
		"a long flood":    {func(now time.Duration) Rest { return missed(now, true) }, never},
		"another source":  {func(now time.Duration) Rest { return Rest{NewSource: now == s(4)} }, s(28)},
		"counted at 5 s":  {func(now time.Duration) Rest { return Rest{Accepted: map[bool]int{now == s(5): 1}[true]} }, s(29)},
		"opened, unknown": {func(now time.Duration) Rest { return Rest{Opened: 1} }, s(24)},
	} {
		w := world{lives: pool(4, 70), Config: Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}}
		for i := range w.lives {
			w.lives[i].id = uint64(i + 1)
		}
		tracker := New(w.Config, start)
		now := time.Duration(0)
		for ; now < never && !tracker.Verdict().Kept; now += w.Poll {
			tracker.Begin(start.Add(now))
			for i := range w.lives {
				sock := w.lives[i].at(now)
				tracker.Observe(&sock)
			}
			tracker.End(c.rest(now))
		}
		if now < c.want || now > c.want+3*w.Poll && c.want != never {
			t.Errorf("%s: %v, want %v", name, now, c.want)
		}
	}
}

func missed(now time.Duration, isMissed bool) (r Rest) {
	if isMissed {
		r.MissedAt = start.Add(now)
	}
	return r
}

// TestInUse: the connections in use, without idle connections. What comes at a rhythm on a
// kept connection counts, unless told otherwise.
func TestInUse(t *testing.T) {
	probe := webSocket(70) // the same bytes every second
	probe.peer = "10.0.4.1"
	for rule, want := range map[ProbeRule]int{IgnoreProbesPatiently: 6, IgnoreProbes: 5} {
		w := world{lives: with(pool(5, 70), []life{answered(-5), probe}), events: true, Config: Config{Probes: rule}}
		_, tracker := w.until(never, kept)
		if got := tracker.Summary().InUse; got != want {
			t.Errorf("rule %d: %d, want %d", rule, got, want)
		}
	}
}

// riskCase is a socket 10 s after the trigger.
type riskCase struct {
	tcp.Socket
	info tcp.Info
	want bool
}

// riskCases are sockets on which a signal may cut a request, or not. Ages are in
// milliseconds.
var riskCases = map[string]riskCase{
	"idle":                                   {tcp.Socket{State: tcp.Established}, exchanged(50, 10), false},
	"a request waits":                        {tcp.Socket{State: tcp.Established}, exchanged(5, 10), true},
	"a request waits unread":                 {tcp.Socket{State: tcp.Established, Unread: 7}, exchanged(50, 10), true},
	"a response that is partly unsent":       {tcp.Socket{State: tcp.Established, Unsent: 900}, notSent(exchanged(50, 10), 500), true},
	"a response that is not acknowledged":    {tcp.Socket{State: tcp.Established, Unsent: 900}, exchanged(50, 10), false},
	"a response to an earlier request":       {tcp.Socket{State: tcp.Established, Unsent: 900}, exchanged(5, 10), true},
	"half-closed, a request waits":           {tcp.Socket{State: tcp.CloseWait}, exchanged(5, 10), true},
	"half-closed, idle":                      {tcp.Socket{State: tcp.CloseWait}, exchanged(50, 10), false},
	"closed by the program":                  {tcp.Socket{State: tcp.FinWait1, Unsent: 900}, notSent(exchanged(50, 10), 500), false},
	"a peer that is gone":                    {tcp.Socket{State: tcp.Established, Unsent: 900, Retries: maxRetries + 1}, exchanged(5, 10), false},
	"connected just now, nothing received":   {tcp.Socket{State: tcp.Established}, tcp.Info{LastReceived: 50 * time.Millisecond, LastSent: 50 * time.Millisecond}, true},
	"connected long ago, nothing received":   {tcp.Socket{State: tcp.Established}, tcp.Info{LastReceived: time.Minute, LastSent: time.Minute}, false},
	"a greeting, and nothing received":       {tcp.Socket{State: tcp.Established}, tcp.Info{LastReceived: time.Minute, LastSent: 5 * time.Millisecond, Sent: 9, SentSegments: 1}, false},
	"a handshake":                            {tcp.Socket{State: tcp.SynRecv}, tcp.Info{}, true},
	"a handshake of an address that is mute": {tcp.Socket{State: tcp.SynRecv, Retries: 1}, tcp.Info{}, false},
	"a listener with a queue":                {tcp.Socket{State: tcp.Listen, Unread: 3}, tcp.Info{}, false},
	"TIME_WAIT":                              {tcp.Socket{State: tcp.TimeWait}, tcp.Info{}, false},
}

// exchanged returns the info of a connection with a request and a response of these ages.
func exchanged(received, sent time.Duration) tcp.Info {
	return tcp.Info{Received: 300, Sent: 900, Segments: 3, SentSegments: 3, Acked: 900,
		LastReceived: received * time.Millisecond, LastSent: sent * time.Millisecond, LastAcked: (sent - 1) * time.Millisecond}
}

func notSent(info tcp.Info, n uint32) tcp.Info {
	info.NotSent = n
	return info
}

// TestAtRisk: each case, and the same socket from an ignored peer.
func TestAtRisk(t *testing.T) {
	for name, c := range riskCases {
		for _, ignored := range []bool{false, true} {
			cfg := Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}
			if ignored {
				cfg.IgnorePeers = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
			}
			tracker := New(cfg, start)
			sock := c.Socket
			sock.Local = netip.MustParseAddrPort("10.0.0.9:80")
			sock.Remote = netip.MustParseAddrPort("10.0.0.1:4000")
			sock.Cookie = 1
			sock.HasInfo = sock.State != tcp.Listen
			sock.Info = c.info
			tracker.Begin(start.Add(s(10)))
			tracker.Observe(&sock)
			tracker.End(Rest{})
			if got := tracker.Verdict().AtRisk == 1; got != (c.want && !ignored) {
				t.Errorf("%s, ignored %v: %v", name, ignored, got)
			}
		}
	}
}

// TestAtRiskSilent: a request silent for MaxSilence is no longer at risk.
func TestAtRiskSilent(t *testing.T) {
	w := world{lives: asking(1, 70), Config: Config{MaxSilence: s(5)}}
	for at, want := range map[float64]int{0.5: 0, 2: 1, 5.5: 1, 7: 0} {
		_, tracker := w.until(s(at), func(Verdict) bool { return false })
		if got := tracker.Verdict().AtRisk; got != want {
			t.Errorf("at %v s: %d", at, got)
		}
	}
}

// TestActive: whether a signal might cut a request, by traffic since the trigger.
func TestActive(t *testing.T) {
	for name, c := range map[string]struct {
		lives []life
		at    float64
		want  bool
	}{
		"no connection":            {nil, 1, false},
		"idle since the trigger":   {[]life{answered(-0.5)}, 1, false},
		"a pool":                   {pool(3, 60), 2, true},
		"a request from before":    {[]life{slowRequest}, 1, true},
		"a probe that is left out": {probing(1), 20, false},
		"silent for a while":       {pool(3, 4), 9, false},
	} {
		w := world{lives: c.lives, events: true}
		_, tracker := w.until(s(c.at), func(Verdict) bool { return false })
		if got := tracker.Verdict(); got.Active != c.want || got.Active && got.Quiet {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestMissingBriefly: samples that follow each other quickly do not forget a connection
// before an event can report the end: the event then is not of a new connection.
func TestMissingBriefly(t *testing.T) {
	l := life{id: 1, open: s(-5), close: s(1), moves: answered(-5).moves}
	for _, late := range []time.Duration{time.Millisecond, s(0.01), s(0.24)} {
		w := world{lives: []life{l}, Config: Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}}
		tracker := New(w.Config, start)
		w.sample(tracker, 0)
		for now := s(0.999); now < l.close+late; now += time.Millisecond {
			w.sample(tracker, now)
		}
		w.sample(tracker, l.close+late, l.closed(l.close+late))
		if n := tracker.Summary().Accepted; n != 0 {
			t.Errorf("an event %v late: %d new connections", late, n)
		}
	}
}
