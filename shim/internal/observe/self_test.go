package observe

import (
	"net/netip"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// local returns a connection over loopback with this cookie.
func local(cookie uint64) *tcp.Socket {
	return &tcp.Socket{State: tcp.Established, Cookie: cookie,
		Local: netip.MustParseAddrPort("127.0.0.1:80"), Remote: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(4000+cookie))}
}

// selfWorld is an observer of local connections. The other end of ours is our socket, that of
// theirs a neighbor's, and the third has none.
func selfWorld() (o *observer, ours, theirs, unknown *tcp.Socket) {
	ours, theirs, unknown = local(1), local(2), local(3)
	far := func(near *tcp.Socket, inode uint32) tcp.Socket {
		return tcp.Socket{Local: near.Remote, Remote: near.Local, Inode: inode}
	}
	o = &observer{
		source: source{conn: &fakeDumper{sockets: []tcp.Socket{far(ours, 5), far(theirs, 6)}}},
		scope:  scope.Scope{Ports: scope.Ports{80}},
		self:   self{isSelf: map[uint64]bool{}},
	}
	o.scope.Learn(scope.Inodes{5: true})
	return o, ours, theirs, unknown
}

// TestSelf: a connection counts unless it is to ourselves; final decisions hold in later
// samples.
func TestSelf(t *testing.T) {
	o, ours, theirs, unknown := selfWorld()
	for i, deferred := range []int{3, 1} { // the second sample decides on the third connection again
		tr := traffic.New(usual, trigger)
		tr.Begin(trigger)
		o.deferred = nil
		for _, s := range []*tcp.Socket{ours, theirs, unknown} {
			o.visit(s, tr)
		}
		if len(o.deferred) != deferred {
			t.Errorf("sample %d: %d deferred, want %d", i, len(o.deferred), deferred)
		}
		if err := o.observeDeferred(tr); err != nil {
			t.Error(err)
		}
		tr.End(traffic.Rest{})
		if n := tr.Sample().Open; n != 2 || o.self.accepted != 1 {
			t.Errorf("sample %d: %d observed, %d to ourselves", i, n, o.self.accepted)
		}
	}
	proxied := check(9)
	o.proxied.conns = append(o.proxied.conns, proxied)
	for name, c := range map[string]struct {
		socket   *tcp.Socket
		excluded bool
		accepted int
	}{
		"decided":    {ours, true, 1},
		"theirs":     {theirs, false, 1},
		"proxied":    {&tcp.Socket{Cookie: 9, Local: proxied.Target, Remote: proxied.Local}, true, 2},
		"never seen": {local(8), false, 1},
		"from afar":  {&tcp.Socket{Local: serverEnd, Remote: clientEnd}, false, 1},
	} {
		o.self.accepted = 1
		if got := o.wasSelf(c.socket); got != c.excluded || o.self.accepted != c.accepted {
			t.Errorf("closed, %s: excluded %v, accepted %d", name, got, o.self.accepted)
		}
	}
}
