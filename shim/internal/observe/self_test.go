package observe

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// local returns a connection over loopback with this cookie.
func local(cookie uint64) *tcp.Socket {
	return &tcp.Socket{State: tcp.Established, Cookie: cookie,
		Local: netip.MustParseAddrPort("127.0.0.1:80"), Remote: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(4000+cookie))}
}

func TestMayBeSelf(t *testing.T) {
	for name, c := range map[string]struct {
		socket tcp.Socket
		want   bool
	}{
		"loopback":    {*local(1), true},
		"own address": {tcp.Socket{Local: serverEnd, Remote: netip.AddrPortFrom(serverEnd.Addr(), 4000)}, true},
		"from afar":   {tcp.Socket{Local: serverEnd, Remote: clientEnd}, false},
		"a listener":  {tcp.Socket{State: tcp.Listen, Local: serverEnd, Remote: netip.AddrPortFrom(serverEnd.Addr(), 0)}, false},
	} {
		if got := mayBeSelf(&c.socket); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestSelf: a candidate is observed unless the judge says that the connection is to
// ourselves; final decisions hold in later samples.
func TestSelf(t *testing.T) {
	f := self{isSelf: map[uint64]bool{}}
	const ours, theirs, unknown = 1, 2, 3
	judged := 0
	sample := func() (observed []uint64) {
		f.beginSample()
		observe := func(s *tcp.Socket) { observed = append(observed, s.Cookie) }
		for _, cookie := range []uint64{ours, theirs, unknown} {
			if s := local(cookie); !f.excludes(s) {
				observe(s)
			}
		}
		f.decide(func(near *tcp.Socket) (isSelf, final bool) {
			judged++
			return near.Cookie == ours, near.Cookie != unknown
		}, observe)
		slices.Sort(observed)
		return observed
	}
	for i, want := range []int{3, 4} { // the second sample judges the third connection again
		if got := sample(); !slices.Equal(got, []uint64{theirs, unknown}) || judged != want || f.selfAccepted != 1 {
			t.Errorf("sample %d: observed %v, judged %d, accepted %d", i, got, judged, f.selfAccepted)
		}
	}
	for name, c := range map[string]struct {
		socket   *tcp.Socket
		proxied  bool
		excluded bool
		accepted int
	}{
		"decided":    {local(ours), false, true, 1},
		"theirs":     {local(theirs), true, false, 1},
		"proxied":    {local(9), true, true, 2},
		"never seen": {local(8), false, false, 1},
		"from afar":  {&tcp.Socket{Local: serverEnd, Remote: clientEnd}, true, false, 1},
	} {
		g := self{isSelf: f.isSelf, selfAccepted: 1}
		if got := g.excludesClosed(c.socket, func(*tcp.Socket) bool { return c.proxied }); got != c.excluded || g.selfAccepted != c.accepted {
			t.Errorf("closed, %s: excluded %v, accepted %d", name, got, g.selfAccepted)
		}
	}
}

// TestSelfLimit: decisions do not pile up.
func TestSelfLimit(t *testing.T) {
	f := self{isSelf: map[uint64]bool{}}
	for i := range uint64(2*manySockets + 3) {
		f.isSelf[i] = true
		f.limit(1)
	}
	if len(f.isSelf) > 1 {
		t.Errorf("%d decisions", len(f.isSelf))
	}
}
