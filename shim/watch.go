package shim

import (
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// View is what a hold would see now. Its JSON names are a promise, as the report's
// are; durations are milliseconds there.
type View struct {
	Schema   int         `json:"schema"`
	Time     time.Time   `json:"time"`
	Observer *string     `json:"observer"` // "none": nothing can be seen; null: there is nothing to see
	Scope    string      `json:"scope"`
	Trouble  string      `json:"trouble,omitempty"` // why it is not the best observer
	Ports    []uint16    `json:"ports"`
	UDP      []uint16    `json:"udp"`  // ports, of which nothing is seen
	Unix     []string    `json:"unix"` // paths, of which nothing is seen
	Open     int         `json:"open"`
	InFlight int         `json:"in_flight"`
	New      int         `json:"new"`              // connections since the last view
	Accepted int         `json:"accepted"`         // and since the first
	LastNew  *int64      `json:"last_new_ago_ms"`  // null: none since the first
	LastByte *int64      `json:"last_byte_ago_ms"` // the same
	Settled  bool        `json:"settled"`
	Quiet    bool        `json:"quiet"`
	Drained  bool        `json:"drained"`
	Peers    []PeerView  `json:"peers"` // those with the most connections
	Probes   []ProbeView `json:"probes"`
	Recent   []int       `json:"-"` // new connections in each of the last seconds
}

// JSON is the view as a line of JSON.
func (v View) JSON() string { return encode(v) }

// PeerView is who has connections open.
type PeerView struct {
	Peer netip.Addr `json:"peer"`
	Open int        `json:"open"`
}

// ProbeView is what looks like a health probe.
type ProbeView struct {
	Peer     netip.Addr `json:"peer"`
	Port     uint16     `json:"port"`
	Bytes    uint64     `json:"bytes"`
	PeriodMS int64      `json:"period_ms"`
}

// IsTerminal reports whether fd is one.
func IsTerminal(fd int) bool { return proc.IsTerminal(fd) }

// How often a view is shown, and how often listeners are looked for: servers come
// and go.
const (
	showEvery = time.Second
	findEvery = 5 * time.Second
)

// topPeers is how many are shown.
const topPeers = 5

// Display is where views are shown.
type Display struct {
	Show  func(View) error // an error ends it
	Enter func()           // before the first, and when we go on after a stop
	Leave func()           // after the last, and before we are stopped
}

// Watch shows what a hold would see in the PID namespace that it runs in, once a
// second, until a signal ends it, or a view cannot be shown. Who does not read has
// no views in the meantime.
func Watch(cfg Config, d Display) error {
	proc.SetAside()
	p, err := cfg.plan(false, false)
	if err != nil {
		return err
	}
	k := system(&Config{TerminationLog: NoTerminationLog})
	if err := k.prepare(); err != nil {
		return err
	}
	d.Enter()
	defer d.Leave()
	due := time.Now()
	v := viewer{plan: &p, judge: traffic.New(p.traffic, due), start: due}
	for {
		began := time.Now()
		v.look(began)
		if now := time.Now(); !now.Before(due) && hasRoom() {
			if err := d.Show(v.view(now)); err != nil {
				return err
			}
			if due = due.Add(showEvery); due.Before(now) {
				due = now.Add(showEvery)
			}
		}
		if ended(k, d, time.Now().Add(v.pause(began))) {
			return nil
		}
	}
}

// hasRoom reports whether standard output takes a view without making us wait, or
// fails at once.
func hasRoom() bool {
	fds := []unix.PollFd{{Fd: 1, Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	return n != 0 || err != nil
}

// ended waits until then, or for a signal that ends us, which it reports.
func ended(k kernel, d Display, until time.Time) bool {
	for {
		switch k.next(until) {
		case sig.TERM, sig.INT, sig.HUP, sig.QUIT:
			return true
		case sig.TSTP:
			if os.Getpid() != 1 {
				d.Leave()
				k.stopSelf(sig.TSTP)
				d.Enter()
			}
		case 0:
			if !time.Now().Before(until) {
				return false
			}
		}
	}
}

// viewer looks again and again, on one goroutine.
type viewer struct {
	observer
	plan   *plan
	judge  *traffic.Tracker
	start  time.Time
	found  time.Time // when the listeners were
	shown  int       // connections, at the last view
	recent []int     // of each of the last views
}

func (v *viewer) look(now time.Time) {
	if now.Sub(v.found) >= findEvery {
		v.close()
		v.observer = observer{everyone: true, partial: v.plan.partial()}
		v.open(v.plan.ports)
		v.found = now
	}
	if len(v.scope.Ports) > 0 {
		v.observer.look(now, v.judge)
		return
	}
	v.count = 0
	v.judge.Begin(now) // nothing is there, and what was is gone
	v.judge.End(v.scope.Complete)
}

// pause is until the next look, which shall not keep the processor busy.
func (v *viewer) pause(began time.Time) time.Duration {
	if v.count > crowd {
		return max(v.plan.traffic.Poll, 10*time.Since(began))
	}
	return v.plan.traffic.Poll
}

func (v *viewer) view(now time.Time) View {
	r, verdict := v.judge.Summary(), v.judge.Verdict()
	view := View{
		Schema: schema, Time: now, Observer: known(v.name), Scope: scopes[v.scope.Method], Trouble: v.trouble,
		Ports: atMost(v.scope.Ports), UDP: atMost(v.scope.UDP), Unix: atMost(v.scope.Unix),
		Open: r.Open, InFlight: r.InFlight, New: r.Accepted - v.shown, Accepted: r.Accepted,
		LastNew: v.ago(now, r.LastNew), LastByte: v.ago(now, r.LastByte),
		Settled: verdict.Settled, Quiet: verdict.Quiet, Drained: verdict.Drained,
		Peers: []PeerView{}, Probes: []ProbeView{},
	}
	for _, p := range v.judge.Peers(topPeers) {
		view.Peers = append(view.Peers, PeerView{p.Addr, p.Open})
	}
	for _, p := range r.Patterns {
		view.Probes = append(view.Probes, ProbeView{p.Peer, p.Port, p.Received, p.Period.Milliseconds()})
	}
	v.shown = r.Accepted
	v.recent = append(v.recent, view.New)
	v.recent = v.recent[max(0, len(v.recent)-columns):]
	view.Recent = v.recent
	return view
}

// ago is how long ago something was, if it was since the start.
func (v *viewer) ago(now, at time.Time) *int64 {
	if !at.After(v.start) {
		return nil
	}
	ms := now.Sub(at).Milliseconds()
	return &ms
}

// Sparkline draws numbers as bars, the highest full.
func Sparkline(numbers []int) string { return sparkline(numbers) }

// shown is how many ports and paths a view has, so that it goes into a pipe at once:
// POLLOUT promises no more than a page.
const shown = 20

// atMost is the first ones of a list, and never nil.
func atMost[T any](list []T) []T { return append([]T{}, list[:min(len(list), shown)]...) }
