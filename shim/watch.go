package shim

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// View is what a hold would observe now. The JSON names are promises, like the names in
// the report. Durations in JSON are milliseconds.
type View struct {
	Schema   int         `json:"schema"`
	Time     time.Time   `json:"time"`
	Observer *string     `json:"observer"` // "none": nothing can be observed; null: no port counts
	Scope    string      `json:"scope"`
	Trouble  string      `json:"trouble,omitempty"` // why Observer is not the best observer
	Ports    []uint16    `json:"ports"`
	UDP      []uint16    `json:"udp"`  // ports whose traffic cannot be observed
	Unix     []string    `json:"unix"` // paths whose traffic cannot be observed
	Open     int         `json:"open"`
	InFlight int         `json:"in_flight"`
	New      int         `json:"new"`              // connections since the last view
	Accepted int         `json:"accepted"`         // connections since the first view
	LastNew  *int64      `json:"last_new_ago_ms"`  // null: none since the first view
	LastByte *int64      `json:"last_byte_ago_ms"` // on a connection that the views have shown; null: none
	Settled  bool        `json:"settled"`
	Quiet    bool        `json:"quiet"`
	Drained  bool        `json:"drained"`
	Peers    []PeerView  `json:"peers"` // the peers with the most connections
	Probes   []ProbeView `json:"probes"`
}

// JSON returns the view as one line of JSON.
func (v View) JSON() string { return report.Encode(v) }

// PeerView is a peer with open connections.
type PeerView struct {
	Peer netip.Addr `json:"peer"`
	Open int        `json:"open"`
}

// ProbeView is a series of connections that look like health probes.
type ProbeView struct {
	Peer     netip.Addr `json:"peer"`
	Port     uint16     `json:"port"`
	Bytes    uint64     `json:"bytes"`
	PeriodMS int64      `json:"period_ms"`
}

// showEvery is the time between two views, and findEvery between two searches for
// listeners: servers start and end while a view is shown.
const (
	showEvery = time.Second
	findEvery = 5 * time.Second
)

// firstAfter is the time before the first view, in which connections come to a busy server
// whose connections are short.
const firstAfter = showEvery / 2

// known is how long before the first view bytes count. The kernel knows the age of the last
// byte of a connection: an idle server is quiet from the first view on.
const known = time.Hour

// topPeers is how many peers a view lists.
const topPeers = 5

// Watch shows what a hold would see in the PID namespace in which Watch runs, once a second,
// until a signal ends it or a view cannot be shown. While standard output is not read, views
// are left out.
func Watch(cfg Config, show func(View) error) error {
	proc.HideGoEnv()
	p, err := newPlan(&cfg, false, false)
	if err != nil {
		return err
	}
	h := newHost(&Config{TerminationLog: NoTerminationLog})
	if err := h.processes.Reserve(); err != nil {
		return err
	}
	w := newViewer(&p, time.Now())
	for {
		select {
		case snapshot := <-w.snapshots:
			if err := w.show(&snapshot, show); err != nil {
				return err
			}
		default:
		}
		switch h.next(time.Time{}) { // waits for the next snapshot, too
		case sig.TERM, sig.INT, sig.HUP, sig.QUIT:
			return nil
		}
	}
}

// hasRoom reports whether standard output takes a view without blocking, or fails at
// once.
func hasRoom() bool {
	fds := []unix.PollFd{{Fd: 1, Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	return n != 0 || err != nil
}

// viewer makes views of the snapshots that a sampler sends.
type viewer struct {
	snapshots <-chan observe.Snapshot
	start     time.Time // of what counts
	givesUp   time.Time // when requests may first be given up
	due       time.Time // of the next view
	accepted  int       // connections, as of the last view
}

// newViewer starts a sampler that observes all of the PID namespace.
func newViewer(p *plan, now time.Time) *viewer {
	start := now.Add(-known)
	cfg := p.observeConfig()
	cfg.Start = start
	cfg.LullStart = 0
	cfg.WholePIDNamespace = true
	cfg.Rescan = findEvery
	cfg.TopPeers = topPeers
	snapshots := make(chan observe.Snapshot, 1)
	observe.Start(cfg, snapshots)
	return &viewer{snapshots: snapshots, start: start, givesUp: now.Add(cfg.Traffic.MaxSilence), due: now.Add(firstAfter)}
}

// show shows a view of s if a view is due and standard output takes it.
func (v *viewer) show(s *observe.Snapshot, show func(View) error) error {
	now := time.Now()
	if now.Before(v.due) || !hasRoom() {
		return nil
	}
	v.due = v.due.Add(showEvery)
	if v.due.Before(now) {
		v.due = now.Add(showEvery)
	}
	return show(v.view(now, s))
}

// view returns s as a View, and records the values to which the next view refers.
func (v *viewer) view(now time.Time, s *observe.Snapshot) View {
	t := &s.Traffic
	view := View{
		Schema: report.Schema, Time: now, Observer: report.NullIfEmpty(s.Observer), Scope: s.Listeners.Method.Name(), Trouble: s.Trouble,
		Ports: atMost(s.Listeners.TCP), UDP: atMost(s.Listeners.UDP), Unix: atMost(s.Listeners.Unix),
		Open: t.Open, InFlight: t.InFlight + v.stillInFlight(now, t), New: t.Accepted - v.accepted, Accepted: t.Accepted,
		LastNew: v.ago(now, t.LastNew), LastByte: v.ago(now, t.LastByte),
		Settled: s.Verdict.Settled, Quiet: s.Verdict.Quiet && v.stillInFlight(now, t) == 0, Drained: s.Verdict.Drained,
		Peers: []PeerView{}, Probes: []ProbeView{},
	}
	for _, p := range s.Peers {
		view.Peers = append(view.Peers, PeerView{p.Addr, p.Open})
	}
	for _, p := range t.Patterns {
		view.Probes = append(view.Probes, ProbeView{p.Peer, p.Port, p.Received, p.Period.Milliseconds()})
	}
	v.accepted = t.Accepted
	return view
}

// stillInFlight returns how many of the requests that the tracker has given up are in flight
// for a hold, which counts the silence of a request from its own start.
func (v *viewer) stillInFlight(now time.Time, t *traffic.Summary) int {
	if now.Before(v.givesUp) {
		return t.LeftOut.GivenUp
	}
	return 0
}

// ago returns the milliseconds from at to now, nil if at is not after the start.
func (v *viewer) ago(now, at time.Time) *int64 {
	if !at.After(v.start) {
		return nil
	}
	ms := now.Sub(at).Milliseconds()
	return &ms
}

// maxShown is how many ports and paths a view lists. A view then fits into a pipe at
// once: POLLOUT promises room for a page at most.
const maxShown = 20

// atMost returns the first maxShown of a list, never nil.
func atMost[T any](list []T) []T { return append([]T{}, list[:min(len(list), maxShown)]...) }
