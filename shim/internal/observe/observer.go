package observe

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/procnet"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// observer shows a judge the connections that count, by the best way there is:
// sock_diag(7), or /proc/net where that is refused. It only carries what it sees.
type observer struct {
	name              string           // of the way; "": there is nothing to see
	trouble           string           // why it is not the best
	wholePIDNamespace bool             // all processes of our PID namespace are ours
	filtered          bool             // not all connections count, whoever they come from
	health            *health.Listener // whose connections are ours; nil: there is none
	scope             scope.Scope
	count             int // of the sockets at the last look

	conn     *sockdiag.Conn
	events   *sockdiag.Events
	flood    traffic.Flood
	told     int              // how many ended since the last look
	bursting bool             // they are too many to hear of each at once
	initial  procnet.Counters // at the trigger
	segments uint64           // InSegs at the last look
	checks   checkActivity    // of the health listener
	exact    bool             // PassiveOpens counts nothing but what counts, unless the container connects to itself
	passive  int64            // connections that the kernel has counted, the health listener's apart
	doubted  [3]int64         // the same, at the last looks
	alone    bool             // it has no listeners but ours
	mines    int              // connections to ourselves that have come
	seen     int              // and all that have
	looked   time.Time        // when the last look began
	self     []tcp.Socket     // those that may come from ourselves
	ended    []parted         // and those of them that are gone
	passed   []health.ProxiedConn
	queues   []tcp.Socket    // listeners in whose accept queue there may be some of them
	mine     map[uint64]bool // and what was found out of them, by cookie
	table    []tcp.Socket    // of /proc/net
	replies  replies
}

// manySockets is how many connections make looks rarer.
const manySockets = 10_000

// burstThreshold is how many ends between two looks are no rush. Without privileges the kernel keeps some 300 of
// them for us.
const burstThreshold = 30

// open takes the best way there is, and finds the ports that count. They stay: a
// server may close its listeners first. Events are heard before the first look,
// so that nothing falls between.
func (o *observer) open(given []uint16) {
	o.mine = map[uint64]bool{}
	o.replies = replies{list: procnet.Root("").Prompt, known: map[uint64]reply{}}
	listeners, err := o.listeners()
	if err != nil {
		o.fall(err)
		listeners, err = procnet.Root("").TCP(nil)
	}
	q := scope.Query{Given: given, Listeners: listeners, Err: err, Cgroup: o.ownCgroup(), Everyone: o.wholePIDNamespace}
	if o.health != nil {
		q.Shim = append(q.Shim, o.health.Inode())
	}
	o.scope = scope.Decide(scope.Look(q))
	if o.conn != nil && len(o.scope.Ports) > 0 {
		o.name = SockDiag
		o.events, _ = sockdiag.OpenEvents(o.scope.Ports)
	}
	if len(o.scope.Ports) == 0 && !o.scope.Complete {
		o.lose(o.scope.Why)
	}
	o.alone = !slices.ContainsFunc(listeners, func(s tcp.Socket) bool { return s.State == tcp.Listen && !o.scope.Ports.Has(s.Local.Port()) })
	o.initial, err = o.counters()
	o.exact = err == nil && o.alone && !o.filtered
	o.passive, o.segments = int64(o.initial.PassiveOpens), o.initial.InSegs
	if err != nil && o.name == SockDiag && o.events == nil {
		o.trouble = "connections that no look sees are not told of: " + err.Error()
	}
	for i := range o.doubted {
		o.doubted[i] = o.passive
	}
}

func (o *observer) listeners() (list []tcp.Socket, err error) {
	if o.conn, err = sockdiag.Open(); err != nil {
		return nil, err
	}
	err = o.conn.Dump(sockdiag.Query{States: sockdiag.In(tcp.Listen)}, func(s *tcp.Socket) { list = append(list, *s) })
	if errors.Is(err, sockdiag.ErrInterrupted) {
		err = nil
	}
	return list, err
}

// fall changes to the next way.
func (o *observer) fall(err error) {
	o.name, o.trouble = ProcNet, "sock_diag: "+err.Error()
	o.close()
}

// lose is for where there is no next one.
func (o *observer) lose(err error) {
	if o.name != None && o.trouble != "" {
		err = fmt.Errorf("%s; %w", o.trouble, err)
	}
	o.name, o.trouble = None, err.Error()
}

func (o *observer) close() {
	if o.conn != nil {
		o.conn.Close()
	}
	if o.events != nil {
		o.events.Close()
	}
	o.conn, o.events = nil, nil
}

// ownCgroup is the id of our control group as a socket of ours shows it, which
// must listen for a moment to be seen; 0 where it cannot be asked.
func (o *observer) ownCgroup() (id uint64) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	local := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if o.conn == nil || unix.Bind(fd, local) != nil || unix.Listen(fd, 0) != nil {
		return 0
	}
	var at syscall.Stat_t
	name, err := unix.Getsockname(fd)
	if err != nil || syscall.Fstat(fd, &at) != nil {
		return 0
	}
	q := sockdiag.Query{States: sockdiag.In(tcp.Listen), Ports: []uint16{uint16(name.(*unix.SockaddrInet4).Port)}}
	o.conn.Dump(q, func(s *tcp.Socket) {
		if uint64(s.Inode) == at.Ino {
			id = s.Cgroup
		}
	})
	return id
}

// look shows the judge all that counts, by the next way where this one fails, and
// reports whether it could see.
func (o *observer) sample(now time.Time, j *traffic.Tracker) bool {
	err := o.see(now, j)
	if err != nil && o.conn != nil {
		o.fall(err)
		j.Reset()
		err = o.see(now, j)
	}
	switch {
	case err != nil:
		o.lose(err)
	case o.name == None && o.conn != nil:
		o.name, o.trouble = SockDiag, ""
	case o.name == None:
		o.name, o.trouble = ProcNet, ""
	}
	return err == nil
}

// see shows the judge what is there, and then what is gone.
func (o *observer) see(now time.Time, j *traffic.Tracker) (err error) {
	j.Begin(now)
	o.listen(now, j)
	o.told = 0
	counters, uncounted := o.counters()
	o.count, o.self, o.queues = 0, o.self[:0], o.queues[:0]
	o.replies.begin(now)
	visit := func(s *tcp.Socket) { o.visit(s, j) }
	if o.conn != nil {
		q := sockdiag.Query{States: sockdiag.AllStates &^ sockdiag.In(tcp.TimeWait), Ports: o.scope.Ports, Info: true}
		if err = o.conn.Dump(q, visit); errors.Is(err, sockdiag.ErrInterrupted) {
			err = nil // what was missed comes back, as something new
		}
	} else {
		o.table, err = procnet.Root("").TCP(o.table[:0])
		for i := range o.table {
			if o.scope.Ports.Has(o.table[i].Local.Port()) {
				visit(&o.table[i])
			}
		}
	}
	o.hear(now, j)
	o.askHealth(now, j)
	o.seeOthers(j)
	o.hearOthers(j)
	o.recount(now, j, counters, uncounted)
	j.End(err == nil)
	return err
}

// visit shows the judge a socket, unless its other end is ours. Whether it is may
// have to be found out.
func (o *observer) visit(s *tcp.Socket, j *traffic.Tracker) {
	o.count++
	o.replies.tell(s)
	if o.health != nil && s.State == tcp.Listen && s.Unread > 0 {
		o.queues = append(o.queues, *s)
		return
	}
	if local(s) {
		mine, known := o.mine[s.Cookie]
		if !known {
			o.self = append(o.self, *s)
		}
		if mine || !known {
			return
		}
	}
	j.Observe(s)
}

// hear tells the judge what is gone, as far as anybody says so.
func (o *observer) hear(now time.Time, j *traffic.Tracker) {
	if o.events != nil {
		count := 0
		lost, err := o.events.Read(func(s *tcp.Socket) {
			count++
			if local(s) {
				o.ended = append(o.ended, parted{*s, now})
			} else {
				j.Closed(now, s)
			}
		})
		if lost > 0 || err != nil {
			j.MarkMissed(now)
		}
		o.told += count + lost
		o.bursting = o.told > burstThreshold || err != nil
		if o.flood.Add(now, count+lost) { // too much is told
			o.events.Close()
			o.events = nil
		}
	}
}

// listen grants activity while too much would be told, and ends that in time:
// before the look, so that nothing falls between.
func (o *observer) listen(now time.Time, j *traffic.Tracker) {
	if !o.flood.Ongoing() {
		return
	}
	j.MarkMissed(now)
	if o.flood.TryResume(now) && o.conn != nil {
		o.events, _ = sockdiag.OpenEvents(o.scope.Ports)
	}
}

// recount finds the connections that nobody has told of, or not yet: the kernel had
// counted them before the look. Connections of other containers may be among them: without
// destroy events they count as ours, with destroy events only reported ends count.
func (o *observer) recount(now time.Time, j *traffic.Tracker, counters procnet.Counters, err error) {
	if o.events == nil {
		o.recountUntold(now, j, counters, err)
		return
	}
	passive := int64(counters.PassiveOpens)
	came, seen := passive-o.passive, j.Accepted()+o.mines
	if err == nil && o.alone && !o.filtered && came > int64(seen-o.seen) {
		j.MarkActive(now) // of which we hear yet
	}
	o.passive, o.seen = passive, seen
}

// recountUntold is for where nobody tells of ends. The health listener may not have
// taken yet what the kernel has counted.
func (o *observer) recountUntold(now time.Time, j *traffic.Tracker, counters procnet.Counters, err error) {
	passive := int64(counters.PassiveOpens)
	sure := passive
	if o.health != nil {
		sure = min(passive, slices.Min(o.doubted[:]))
	}
	switch {
	case err == nil && sure <= o.passive:
	case err == nil && o.exact && counters.ActiveOpens == o.initial.ActiveOpens && !o.flood.Ongoing():
		j.Counted(now, int(counters.PassiveOpens-o.initial.PassiveOpens))
	default:
		j.MarkMissed(now)
	}
	o.passive = sure
	o.doubted = [...]int64{o.doubted[1], o.doubted[2], passive}
	o.checkSegments(now, j, counters)
}

// checkSegments tells the judge of segments that arrived since the last look, where no
// connection shows its bytes: gVisor leaves the queues of /proc/net/tcp at 0, and on Linux
// most requests are read and answered between two looks. Segments of health checks cannot
// be told apart, so none count while checks go on.
func (o *observer) checkSegments(now time.Time, j *traffic.Tracker, counters procnet.Counters) {
	if moved := o.checksMoved(now); o.conn == nil && counters.InSegs != o.segments && !moved {
		j.Segments(now)
	}
	o.segments = counters.InSegs
}

// counters are those of TCP in the network namespace, without the connections that the
// health listener knows of.
func (o *observer) counters() (procnet.Counters, error) {
	counters, err := procnet.Root("").Counters()
	if o.health != nil {
		counters.PassiveOpens -= o.health.Opens()
	}
	return counters, err
}
