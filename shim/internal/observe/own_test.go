package observe

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// healthCheck returns a connection of the health listener to the command.
func healthCheck(port uint16) health.Conn {
	target := netip.MustParseAddrPort("127.0.0.1:80")
	return health.Conn{Local: netip.AddrPortFrom(target.Addr(), port), Target: target}
}

// TestOwn: connections of the health listener that were accepted since the previous sample do
// not count in the command's accept queue.
func TestOwn(t *testing.T) {
	f := &fakeConns{}
	p := own{all: f}
	for i, cells := range tables.Rows(`
		# opened so far | open, by port | in the accept queue | of which count | segments may be theirs
		0 |     | 2 | 2 | false
		1 | 1   | 1 | 0 | true
		# not accepted since
		1 | 1   | 1 | 1 | true
		2 | 1 2 | 3 | 2 | true
		2 |     | 0 | 0 | false
		3 |     | 0 | 0 | true
	`) {
		fmt.Sscan(cells[0], &f.opens)
		f.conns = nil
		for port := range strings.FieldsSeq(cells[1]) {
			f.conns = append(f.conns, healthCheck(uint16(port[0]-'0')))
		}
		queue := tcp.Socket{State: tcp.Listen, Local: healthCheck(0).Target}
		fmt.Sscan(cells[2], &queue.Unread)
		moved := p.update(trigger.Add(time.Duration(i) * time.Second))
		p.discount(&queue)
		if got := fmt.Sprint(queue.Unread, " ", moved); got != cells[3]+" "+cells[4] {
			t.Errorf("sample %d: %s, want %s", i, got, cells[3:])
		}
	}
	if want := trigger.Add(4*time.Second - maxEventDelay); !f.since.Equal(want) {
		t.Errorf("asked for connections closed since %v, want %v", f.since, want)
	}
}

// TestOwnInQueue: a sample shows the queue of the command without connections of lameduck's own.
func TestOwnInQueue(t *testing.T) {
	queue := listenerOn(80, 0)
	queue.Unread = 2
	s, _, _ := fakeSampler(queue)
	s.observer.own.all = &fakeConns{conns: []health.Conn{healthCheck(1)}}
	s.take(trigger)
	if others := s.snapshot.Ledger.Others; len(others) != 1 || others[0].Unread != 1 {
		t.Errorf("%+v, want a queue of one", others)
	}
}
