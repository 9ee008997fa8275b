package observe

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

// fakeListener is a healthListener with these connections.
type fakeListener struct {
	opens uint64
	conns []health.ProxiedConn
	since time.Time
}

func (f *fakeListener) Inode() uint32 { return 7 }
func (f *fakeListener) Opens() uint64 { return f.opens }
func (f *fakeListener) Proxied(dst []health.ProxiedConn, since time.Time) []health.ProxiedConn {
	f.since = since
	return append(dst, f.conns...)
}

// check returns a connection of the health listener to the command.
func check(port uint16) health.ProxiedConn {
	return health.ProxiedConn{Local: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), Target: netip.MustParseAddrPort("127.0.0.1:80")}
}

// TestProxied: connections of the health listener are known, and connections accepted since the
// previous sample do not count in the command's accept queue.
func TestProxied(t *testing.T) {
	f := &fakeListener{}
	p := proxied{listener: f}
	for i, cells := range script.Rows(`
		# connections by port | in the accept queue | of which count
		    | 2 | 2
		1   | 1 | 0
		# not accepted since
		1   | 1 | 1
		1 2 | 3 | 2
		3 4 | 1 | 0
	`) {
		f.conns = nil
		for port := range strings.FieldsSeq(cells[0]) {
			f.conns = append(f.conns, check(uint16(port[0]-'0')))
		}
		queue := tcp.Socket{State: tcp.Listen, Local: check(0).Target, Unread: uint32(cells[1][0] - '0')}
		if !p.defers(&queue) {
			t.Errorf("sample %d: the listener is not deferred", i)
		}
		p.update(trigger.Add(time.Duration(i) * time.Second))
		p.discount(&queue)
		if fmt.Sprint(queue.Unread) != cells[2] {
			t.Errorf("sample %d: %d in the queue, want %s", i, queue.Unread, cells[2])
		}
		for _, conn := range f.conns {
			if !p.has(&tcp.Socket{Local: conn.Target, Remote: conn.Local}) {
				t.Errorf("sample %d: %v is not known", i, conn)
			}
		}
		if p.has(&tcp.Socket{Local: check(0).Target, Remote: check(99).Local}) {
			t.Errorf("sample %d: another connection is known", i)
		}
	}
	if want := trigger.Add(3*time.Second - maxEventDelay); !f.since.Equal(want) {
		t.Errorf("asked for connections closed since %v, want %v", f.since, want)
	}
}

// TestProxiedDefers: only a listener with connections waiting is deferred, and only if
// there is a health listener.
func TestProxiedDefers(t *testing.T) {
	queue := tcp.Socket{State: tcp.Listen, Unread: 1}
	with := proxied{listener: &fakeListener{}}
	var without proxied
	if !with.defers(&queue) || with.defers(&tcp.Socket{State: tcp.Listen}) || with.defers(&tcp.Socket{State: tcp.Established, Unread: 1}) {
		t.Error("with a health listener")
	}
	if without.defers(&queue) {
		t.Error("without a health listener")
	}
}

// TestProxiedMoved: a check may cause segments up to one interval after the check.
func TestProxiedMoved(t *testing.T) {
	f := &fakeListener{}
	p := proxied{listener: f}
	// opens, "o" with an open connection, "!" if segments may be its own
	for i, step := range strings.Fields("0 1! 1! 1 1o! 1! 1") {
		f.opens, f.conns = uint64(step[0]-'0'), nil
		if strings.Contains(step, "o") {
			f.conns = []health.ProxiedConn{check(1)}
		}
		if got := p.update(trigger); got != strings.HasSuffix(step, "!") {
			t.Errorf("sample %d: %v", i, got)
		}
	}
}
