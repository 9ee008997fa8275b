package ledger

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// fates are the letters of the table.
var fates = map[Fate]string{Shown: "shown", Missing: "missing", Closed: "closed", Lost: "lost"}

// TestFates: what becomes of a connection that samples, a second apart, show or do not show. An
// event may report the end of one that is missing for two seconds. Samples of a list that could not
// be read to its end show nothing to be missing.
func TestFates(t *testing.T) {
	for _, cells := range tables.Rows(`
		# samples: what each shows | what each says
		open open            | shown,first shown
		open - open          | shown,first missing shown
		open - - - -         | shown,first missing missing lost -
		open - - - open      | shown,first missing missing lost shown,first,new
		open - - - - close   | shown,first missing missing lost - -
		open - close         | shown,first missing closed
		open open+close -    | shown,first shown,closed -
		close -              | closed,first -
		- open open          | - shown,first,new shown,new
		open fail fail -     | shown,first - - missing
		fail open            | - shown,first
		open close left - -  | shown,first closed left - -
		open left close left | shown,first left,missing closed left
		ignored open         | shown,first,ignored shown,first,new
		own own open         | shown,first,own shown,own shown,first,new
	`) {
		l := New(Config{LostAfter: 2 * time.Second, IgnorePeers: []netip.Prefix{netip.MustParsePrefix("10.0.0.9/32")}})
		var got []string
		for i, what := range strings.Fields(cells[0]) {
			now := time.Time{}.Add(time.Duration(i+1) * time.Second)
			l.Begin(now)
			for part := range strings.SplitSeq(what, "+") {
				s := socket(5)
				switch part {
				case "open":
					l.Observe(&s, Clients)
				case "ignored":
					l.Observe(&s, Ignored)
				case "own":
					l.Observe(&s, Own)
				case "left":
					s.State, s.HasInfo = tcp.FinWait2, false
					l.Observe(&s, Clients)
				case "close":
					s.State = tcp.Close
					l.Closed(&s, now, Clients)
				}
			}
			got = append(got, say(l.End(Rest{Incomplete: what == "fail"})))
		}
		if got := strings.Join(got, " "); got != cells[1] {
			t.Errorf("%s: %s, want %s", cells[0], got, cells[1])
		}
	}
}

// say says what a sample says of a connection, and that it is new if an earlier sample has not
// shown it.
func say(y *Sample) string {
	var words []string
	for range y.Others {
		words = append(words, "left")
	}
	for _, c := range y.Conns {
		words = append(words, fates[c.Fate])
		if c.Before.Seen == 0 {
			words = append(words, "first")
		}
		if c.New && c.Fate == Shown {
			words = append(words, "new")
		}
		if c.Side != Clients {
			words = append(words, map[Side]string{Own: "own", Ignored: "ignored"}[c.Side])
		}
	}
	if words == nil {
		return "-"
	}
	return strings.Join(words, ",")
}

// socket returns the socket of a connection.
func socket(cookie uint64) tcp.Socket {
	return tcp.Socket{
		State: tcp.Established, Cookie: cookie, Inode: 1, HasInfo: true, Local: netip.MustParseAddrPort("10.0.0.1:80"),
		Remote: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), uint16(cookie)), Info: tcp.Info{Received: 9, Sent: 9},
	}
}

// TestDecided: a decision outlives the connection by five seconds, for a late event, and as long as
// the kernel keeps something of it. What has no cookie cannot be told from others.
func TestDecided(t *testing.T) {
	l := New(Config{LostAfter: time.Second})
	half, left := socket(3), socket(1)
	half.State = tcp.SynRecv
	left.State, left.HasInfo = tcp.TimeWait, false
	sockets := map[string]tcp.Socket{"ours": socket(1), "theirs": socket(2), "nameless": socket(0), "half": half, "left": left}
	now := time.Time{}
	for i, cells := range tables.Rows(`
		# after | what the sample shows | what is decided then
		1s  | ours theirs nameless | 1 own, 2, 3 own
		1s  | ours theirs half     | 1 own, 2, 3 own
		# after an event
		4s  | left                 | 1 own, 2, 3 own
		1s  | left                 | 1 own, 2
		10s | left                 | 1 own
		4s  |                      | 1 own
		1s  |                      |
	`) {
		if i == 2 {
			closed := sockets["ours"]
			l.Closed(&closed, now, Own)
		}
		after, _ := time.ParseDuration(cells[0])
		now = now.Add(after)
		l.Begin(now)
		for name := range strings.FieldsSeq(cells[1]) {
			s := sockets[name]
			l.Observe(&s, Own)
		}
		l.End(Rest{})
		var decided []string
		for _, name := range []string{"ours", "theirs", "half", "nameless"} {
			s := sockets[name]
			if i == 0 {
				l.Decide(&s, name != "theirs")
			}
			if isOwn, isMade := l.Decided(&s); isMade {
				decided = append(decided, strconv.Itoa(int(s.Cookie))+map[bool]string{true: " own"}[isOwn])
			}
		}
		if got := strings.Join(decided, ", "); got != cells[2] {
			t.Errorf("sample %d: %s; want %s", i, got, cells[2])
		}
	}
	if n := len(l.conns); n > 0 {
		t.Errorf("%d connections are left", n)
	}
}
