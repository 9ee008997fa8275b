package letgo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestQuestions: how many connections of a client may be closed at once, and after which time
// without a new connection, by what has become of earlier ones.
func TestQuestions(t *testing.T) {
	for _, cells := range tables.Rows(`
		# what has happened                          | none new for | how many
		                                             | 0.9s         | 0
		                                             | 1s           | 1
		asked                                        | 1s           | 0
		asked left                                   | 1s           | 2
		asked left asked asked left                  | 1s           | 2
		asked left asked asked left left             | 1s           | 4
		asked reset                                  | 1s           | 1
		asked reset asked reset                      | 9s           | 0
		asked left asked asked left left back        | 0.9s         | 0
		asked left asked asked left left back        | 1s           | 1
		asked left back back                         | 1s           | 1
		asked left back asked left back              | 1s           | 0
		asked left back asked left back              | 2s           | 1
		asked left back asked left back asked left back                  | 3.9s | 0
		asked left back asked left back asked left back                  | 4s   | 1
		asked left back asked left back asked left back asked left back  | 4s   | 1
	`) {
		p := &client{}
		ask := func() { p.asked, p.away, p.stay = 1, p.away+1, p.stay+1 }
		for event := range strings.FieldsSeq(cells[0]) {
			k := &Kept{Conn: &ledger.Conn{Shut: true}, from: p}
			switch event {
			case "asked":
				ask()
			case "left":
				k.noteEnd(tcp.TimeWait)
			case "reset":
				k.noteMissing(true)
			case "back":
				p.noteBack()
			}
		}
		noneNewFor, _ := time.ParseDuration(cells[1])
		n := 0
		for ; p.mayBeAsked(1, noneNewFor); n++ {
			ask()
		}
		if want := int(cells[2][0] - '0'); n != want {
			t.Errorf("%q: %d, want %d", cells, n, want)
		}
	}
}

// TestEven: the segments in one direction are a multiple of those in the other, and would not be without an answer.
func TestEven(t *testing.T) {
	for _, cells := range tables.Rows(`
		# segments received | sent | even
		0  | 0  | false
		4  | 4  | false
		5  | 0  | false
		5  | 3  | false
		18 | 9  | true
		18 | 8  | false
		5  | 5  | true
		9  | 18 | true
		8  | 16 | false
		50 | 49 | false
		50 | 98 | false
		0  | 9  | false
	`) {
		var c ledger.Conn
		_, _ = fmt.Sscan(cells[0]+" "+cells[1], &c.Info.Segments, &c.Info.SentSegments)
		if got := fmt.Sprint(c.IsEven()); got != cells[2] {
			t.Errorf("%s received, %s sent: %s", cells[0], cells[1], got)
		}
	}
}

// TestSilence: the silence after the last byte on closed connections is ten mean gaps between
// their requests.
func TestSilence(t *testing.T) {
	for _, c := range []struct {
		requests int
		want     float64
	}{{0, 3}, {1, 3}, {20, 2}, {40, 1}, {1000, 1}} {
		a := New(Config{QuietFor: s(3), CloseIdle: true})
		a.requests, a.now = c.requests, ledger.Trigger+s(4)
		if got := a.Silence(); got != s(c.want) {
			t.Errorf("%d requests in 4 s: %v, want %v s", c.requests, got, c.want)
		}
	}
}
