package shim

import (
	"errors"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procnet"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// sight is what was seen at one look.
type sight struct {
	look     stop.Look
	traffic  traffic.Report
	scope    string // how the listeners were found
	observer string // who looks
	trouble  string // why it is not the best observer; once
}

// watcher looks at the traffic during a hold, on a goroutine of its own: a look
// takes as long as there are connections. It only carries what it sees.
type watcher struct {
	cfg   traffic.Config
	given []uint16
	until stop.Reason
	out   chan sight // the newest alone
	over  atomic.Bool

	conn    *sockdiag.Conn
	events  *sockdiag.Events
	flood   traffic.Flood
	passive uint64
	scope   scope.Scope
	judge   *traffic.Judge
	now     sight
	self    []tcp.Socket    // those that may come from ourselves
	mine    map[uint64]bool // the cookies of those that did
	table   []tcp.Socket    // of the fallback
	count   int
}

// crowd is how many connections make looks rarer.
const crowd = 10_000

// watch begins to look, and goes on until stopped.
func watch(p *plan, start time.Time, out chan sight) *watcher {
	w := &watcher{cfg: p.traffic, given: p.ports, until: p.stop.Gate.Until, out: out, mine: map[uint64]bool{}}
	w.judge = traffic.New(w.cfg, start)
	go w.run()
	return w
}

func (w *watcher) stop() { w.over.Store(true) }

func (w *watcher) run() {
	w.open()
	defer w.close()
	for !w.over.Load() {
		began := time.Now()
		w.now.look = w.look(began)
		w.now.traffic = w.judge.Report()
		w.tell()
		pause := w.cfg.Poll
		if w.count > crowd {
			pause = max(pause, 10*time.Since(began))
		}
		w.sleep(pause)
	}
}

// tell gives the newest sight to the loop, in place of one that it has not taken.
func (w *watcher) tell() {
	select {
	case <-w.out:
	default:
	}
	w.out <- w.now
	w.now.trouble = ""
	sig.Wake()
}

// sleep waits in the kernel: Go's timers would need a thread to look at them.
func (w *watcher) sleep(length time.Duration) {
	limit := unix.NsecToTimespec(int64(length))
	unix.Ppoll(nil, &limit, nil)
}

// open takes the best observer there is, and the ports that count, which stay.
// Events are heard before the first look, so that nothing falls between.
func (w *watcher) open() {
	listeners, err := w.listeners()
	if err != nil {
		w.fall(err)
		listeners, err = procnet.Root("").TCP(nil)
	}
	w.scope = scope.Decide(scope.Look(scope.Query{Given: w.given, Listeners: listeners, Err: err, Cgroup: w.ownCgroup()}))
	w.now.scope = w.scope.Method.String()
	if w.conn != nil && len(w.scope.Ports) > 0 {
		w.now.observer = "sock_diag"
		w.events, _ = sockdiag.OpenEvents(w.scope.Ports)
	}
	w.passive, _ = procnet.Root("").PassiveOpens()
}

func (w *watcher) listeners() (list []tcp.Socket, err error) {
	if w.conn, err = sockdiag.Open(); err != nil {
		return nil, err
	}
	err = w.conn.Dump(sockdiag.Query{States: sockdiag.In(tcp.Listen)}, func(s *tcp.Socket) { list = append(list, *s) })
	if errors.Is(err, sockdiag.ErrInterrupted) {
		err = nil
	}
	return list, err
}

// fall changes to the next observer.
func (w *watcher) fall(err error) {
	w.now.observer, w.now.trouble = "/proc/net", "sock_diag: "+err.Error()
	w.close()
	w.conn, w.events = nil, nil
}

func (w *watcher) close() {
	if w.conn != nil {
		w.conn.Close()
	}
	if w.events != nil {
		w.events.Close()
	}
}

// ownCgroup is the id of our control group as a socket of ours shows it, which
// must listen for a moment to be seen; 0 where it cannot be asked.
func (w *watcher) ownCgroup() (id uint64) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil || w.conn == nil {
		return 0
	}
	defer unix.Close(fd)
	local := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if unix.Bind(fd, local) != nil || unix.Listen(fd, 0) != nil {
		return 0
	}
	var at syscall.Stat_t
	name, err := unix.Getsockname(fd)
	if err != nil || syscall.Fstat(fd, &at) != nil {
		return 0
	}
	q := sockdiag.Query{States: sockdiag.In(tcp.Listen), Ports: []uint16{uint16(name.(*unix.SockaddrInet4).Port)}}
	w.conn.Dump(q, func(s *tcp.Socket) {
		if uint64(s.Inode) == at.Ino {
			id = s.Cgroup
		}
	})
	return id
}

// look takes one look, and says what it means to the hold.
func (w *watcher) look(now time.Time) stop.Look {
	if len(w.scope.Ports) == 0 {
		return w.portless()
	}
	err := w.see(now)
	if err != nil && w.conn != nil {
		w.fall(err)
		err = w.see(now)
	}
	if err != nil {
		w.now.observer = "none"
		return stop.Blind
	}
	v := w.judge.Verdict()
	switch {
	case v.Stuck:
		return stop.Hung
	case w.until == stop.Settled && v.Settled, w.until == stop.Quiet && v.Quiet, w.until == stop.Drained && v.Drained:
		return stop.Calm
	}
	return stop.Busy
}

// portless is for a container without TCP listeners, as far as one could look.
// Behind a Unix socket there is nothing to be seen but silence.
func (w *watcher) portless() stop.Look {
	switch {
	case w.scope.NoListener():
		return stop.Nobody
	case !w.scope.Complete:
		return stop.Blind
	case len(w.scope.UDP) > 0:
		return stop.Datagrams
	}
	return stop.Calm
}

// see shows the judge all that counts: what is there, and then what is gone.
func (w *watcher) see(now time.Time) (err error) {
	w.judge.Look(now)
	w.listen(now)
	w.count, w.self = 0, w.self[:0]
	if w.conn != nil {
		q := sockdiag.Query{States: sockdiag.AllStates &^ sockdiag.In(tcp.TimeWait), Ports: w.scope.Ports, Info: true}
		if err = w.conn.Dump(q, w.visit); errors.Is(err, sockdiag.ErrInterrupted) {
			err = nil // what was missed comes back, as something new
		}
	} else {
		w.table, err = procnet.Root("").TCP(w.table[:0])
		for i := range w.table {
			if w.scope.Ports.Has(w.table[i].Local.Port()) {
				w.visit(&w.table[i])
			}
		}
	}
	w.seeOthers()
	w.hear(now)
	w.judge.Done(err == nil)
	return err
}

// visit shows the judge a socket, unless its other end may be ours.
func (w *watcher) visit(s *tcp.Socket) {
	w.count++
	if s.State != tcp.Listen && (s.Remote.Addr().IsLoopback() || s.Remote.Addr() == s.Local.Addr()) {
		w.self = append(w.self, *s)
		return
	}
	w.judge.See(s)
}

// seeOthers shows the judge those of self whose other end is somebody else's.
func (w *watcher) seeOthers() {
	if len(w.self) == 0 {
		return
	}
	far := map[[2]uint16]tcp.Socket{}
	note := func(s *tcp.Socket) { far[[2]uint16{s.Local.Port(), s.Remote.Port()}] = *s }
	if w.conn != nil {
		var ports []uint16
		for i := range w.self {
			ports = append(ports, w.self[i].Remote.Port())
		}
		w.conn.Dump(sockdiag.Query{States: sockdiag.AllStates, Ports: ports}, note)
	} else {
		for i := range w.table {
			note(&w.table[i])
		}
	}
	w.scope.Learn(scope.Hold("/proc", false).Inodes)
	for i := range w.self {
		near := &w.self[i]
		other, found := far[[2]uint16{near.Remote.Port(), near.Local.Port()}]
		if !found || !w.scope.Self(near, &other) {
			w.judge.See(near)
		} else if w.mine[near.Cookie] = true; len(w.mine) > crowd {
			clear(w.mine)
		}
	}
}

// hear tells the judge what is gone. Where nobody says so, a connection that no
// look saw is still one that the kernel has counted.
func (w *watcher) hear(now time.Time) {
	if w.events != nil {
		ended := 0
		lost, err := w.events.Read(func(s *tcp.Socket) {
			ended++
			if !w.mine[s.Cookie] {
				w.judge.Gone(now, s)
			}
		})
		if lost > 0 || err != nil {
			w.judge.Lost(now)
		}
		w.heard(now, ended+lost)
		return
	}
	passive, err := procnet.Root("").PassiveOpens()
	if err == nil && passive > w.passive {
		w.judge.Lost(now)
	}
	w.passive = passive
}

// heard stops listening where too much is told.
func (w *watcher) heard(now time.Time, ended int) {
	if w.flood.Heard(now, ended) {
		w.events.Close()
		w.events = nil
	}
}

// listen grants activity while nobody listens, and ends that in time: before the
// look, so that nothing falls between.
func (w *watcher) listen(now time.Time) {
	if !w.flood.Lasts() {
		return
	}
	w.judge.Lost(now)
	if w.flood.Over(now) && w.conn != nil {
		w.events, _ = sockdiag.OpenEvents(w.scope.Ports)
	}
}
