package observe

import (
	"net/netip"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
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
	for i, c := range []struct {
		conns  []health.ProxiedConn
		unread uint32 // in the accept queue
		want   uint32
	}{
		{nil, 2, 2},
		{[]health.ProxiedConn{check(1)}, 1, 0},
		{[]health.ProxiedConn{check(1)}, 1, 1}, // not accepted since
		{[]health.ProxiedConn{check(1), check(2)}, 3, 2},
		{[]health.ProxiedConn{check(3), check(4)}, 1, 0},
	} {
		f.conns = c.conns
		queue := tcp.Socket{State: tcp.Listen, Local: check(0).Target, Unread: c.unread}
		if !p.defers(&queue) {
			t.Errorf("sample %d: the listener is not deferred", i)
		}
		p.update(trigger.Add(time.Duration(i) * time.Second))
		p.discount(&queue)
		if queue.Unread != c.want {
			t.Errorf("sample %d: %d in the queue, want %d", i, queue.Unread, c.want)
		}
		for _, conn := range c.conns {
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
	for i, c := range []struct {
		opens uint64
		open  bool
		want  bool
	}{{0, false, false}, {1, false, true}, {1, false, true}, {1, false, false}, {1, true, true}, {1, false, true}, {1, false, false}} {
		f.opens, f.conns = c.opens, nil
		if c.open {
			f.conns = []health.ProxiedConn{check(1)}
		}
		if got := p.update(trigger); got != c.want {
			t.Errorf("sample %d: %v", i, got)
		}
	}
}
