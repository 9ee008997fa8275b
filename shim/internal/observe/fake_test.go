package observe

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestMain runs the tests in a new network namespace.
func TestMain(m *testing.M) {
	netns.Main(m, 0)
}

// usual is the configuration behind the times in tests.
var usual = traffic.Config{QuietFor: 3 * time.Second, MaxSilence: 30 * time.Second, Poll: 250 * time.Millisecond}

var (
	trigger   = time.Unix(1000, 0)
	serverEnd = netip.MustParseAddrPort("10.0.0.1:80")
	clientEnd = netip.MustParseAddrPort("10.0.0.2:4000")
	errDenied = errors.New("denied")
)

// fakeDumper dumps given sockets.
type fakeDumper struct {
	sockets []tcp.Socket
	errs    []error // of the next dumps
	dumps   int
}

func (f *fakeDumper) Dump(states sockdiag.States, ports tcp.Ports, visit func(*tcp.Socket)) (err error) {
	f.dumps++
	if len(f.errs) > 0 {
		err = f.errs[0]
		f.errs = f.errs[1:]
	}
	var s tcp.Socket // reused, as by sockdiag
	for _, s = range f.sockets {
		if states&sockdiag.In(s.State) != 0 && (len(ports) == 0 || ports.Has(s.Local.Port())) {
			visit(&s)
		}
	}
	return err
}

// fakeEvents is an eventReader of a number of connections that have ended.
type fakeEvents struct {
	ended  int
	missed bool
	err    error // of SetPorts
	closed bool
	ports  []uint16
	fd     int
	read   func()
}

func (f *fakeEvents) SetPorts(ports tcp.Ports) error {
	f.ports = ports
	return f.err
}

func (f *fakeEvents) Read(visit func(*tcp.Socket)) (missed bool) {
	if f.read != nil {
		f.read()
	}
	var s tcp.Socket // reused
	for i := range f.ended {
		s = tcp.Socket{State: tcp.Close, Cookie: uint64(i + 1), Local: serverEnd, Remote: clientEnd, HasInfo: true}
		s.Info.Received = 9
		visit(&s)
	}
	f.ended = 0
	return f.missed
}

func (f *fakeEvents) FD() int      { return f.fd }
func (f *fakeEvents) Close() error { f.closed = true; return nil }

// fakeConns has these connections.
type fakeConns struct {
	opens uint64
	conns []health.Conn
	since time.Time
}

func (f *fakeConns) Opens() uint64 { return f.opens }
func (f *fakeConns) Since(dst []health.Conn, at time.Time) []health.Conn {
	f.since = at
	return append(dst, f.conns...)
}

// fakeSampler returns a sampler of a fake source and of fake events. Port 80 counts.
func fakeSampler(sockets ...tcp.Socket) (*Sampler, *fakeDumper, *fakeEvents) {
	f, e := &fakeDumper{sockets: sockets}, &fakeEvents{}
	s := newSampler(Config{Start: trigger, Traffic: usual, Gate: stop.Gate{Until: stop.Quiet}}, nil)
	s.observer = &Observer{
		scope:  scope.Scope{Ports: tcp.Ports{80}, Complete: true},
		seen:   map[uint32]bool{},
		source: source{dump: f.Dump},
		events: events{reader: e},
		opens:  opens{comparable: true},
		own:    own{all: s.cfg.Own},
		ledger: ledger.New(usual.Ledger(trigger)),
	}
	s.observer.opens.latest, _ = s.observer.counters()
	return s, f, e
}

// kept returns a connection that nobody has used for an hour.
func kept(cookie uint64) tcp.Socket {
	s := tcp.Socket{State: tcp.Established, Local: serverEnd, Remote: clientEnd, Cookie: cookie, Inode: 1, HasInfo: true}
	s.Info = tcp.Info{Received: 300, Sent: 600, LastReceived: 2 * time.Hour, LastSent: time.Hour, LastAcked: time.Hour}
	return s
}

// procRoot returns a directory with the table of /proc/net that shows kept, and no queue.
func procRoot(t *testing.T) procfs.Root {
	return procfs.Root(testutil.Files(t, "== net/tcp\nsl local_address rem_address st tx_queue rx_queue tr tm->when\n"+
		"0: 0100000A:0050 0200000A:0FA0 01 00000000:00000000 00:00000000 00000000 0 0 1 1 0 20 4 30 10 -1"))
}

// local returns a connection over loopback.
func local(cookie uint64) tcp.Socket {
	loopback := netip.MustParseAddr("127.0.0.1")
	return tcp.Socket{
		State: tcp.Established, Cookie: cookie,
		Local: netip.AddrPortFrom(loopback, 80), Remote: netip.AddrPortFrom(loopback, uint16(4000+cookie)),
	}
}

// listenerOn returns a listener whose inode is the port's number.
func listenerOn(port uint16, cgroup uint64) tcp.Socket {
	local := netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	return tcp.Socket{State: tcp.Listen, Local: local, Inode: uint32(port), Cgroup: cgroup}
}
