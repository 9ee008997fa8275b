package shim

import (
	"net/netip"
	"os"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// View is what a hold would see now. Its JSON names are a promise, as the report's
// are; durations are milliseconds there.
type View struct {
	Schema   int         `json:"schema"`
	Time     time.Time   `json:"time"`
	Observer string      `json:"observer"` // "none": nothing can be seen
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

// Watch shows what a hold would see in the PID namespace that it runs in, once a
// second, until show says no or a signal ends it. An error means that it has not
// begun.
func Watch(cfg Config, show func(View) bool) error {
	proc.SetAside()
	p, err := cfg.plan(false, false)
	if err != nil {
		return err
	}
	k := system(newTermlog(NoTerminationLog), 0)
	if err := k.prepare(); err != nil {
		return err
	}
	began := time.Now()
	v := viewer{plan: &p, judge: traffic.New(p.traffic, began), start: began}
	for next, due := began, began; ; next = next.Add(p.traffic.Poll) {
		if v.look(time.Now()); !time.Now().Before(due) {
			if !show(v.view(time.Now())) {
				return nil
			}
			due = due.Add(showEvery)
		}
		if ended(k, next.Add(p.traffic.Poll)) {
			return nil
		}
	}
}

// ended waits until then, or for a signal that ends us, which it reports.
func ended(k kernel, until time.Time) bool {
	for time.Now().Before(until) {
		switch k.next(until) {
		case sig.TERM, sig.INT, sig.HUP, sig.QUIT:
			return true
		case sig.TSTP:
			if os.Getpid() != 1 {
				k.stopSelf(sig.TSTP)
			}
		}
	}
	return false
}

// viewer looks again and again, on one goroutine.
type viewer struct {
	observer
	plan   *plan
	judge  *traffic.Judge
	start  time.Time
	found  time.Time // when the listeners were
	count  int       // of the connections at the last view
	recent []int     // of each of the last views
}

func (v *viewer) look(now time.Time) {
	if now.Sub(v.found) >= findEvery {
		v.close()
		v.observer = observer{everyone: true}
		v.open(v.plan.ports)
		v.found = now
	}
	if len(v.scope.Ports) > 0 {
		v.observer.look(now, v.judge)
	}
}

func (v *viewer) view(now time.Time) View {
	r, verdict := v.judge.Report(), v.judge.Verdict()
	view := View{
		Schema: schema, Time: now, Observer: v.name, Scope: scopes[v.scope.Method], Trouble: v.trouble,
		Ports: append([]uint16{}, v.scope.Ports...), UDP: append([]uint16{}, v.scope.UDP...), Unix: append([]string{}, v.scope.Unix...),
		Open: r.Open, InFlight: r.InFlight, New: r.Accepted - v.count, Accepted: r.Accepted,
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
	v.count = r.Accepted
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
