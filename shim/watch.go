package shim

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
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
	Peers    []Peer      `json:"peers"` // the peers with the most connections
	Probes   []ProbeView `json:"probes"`
	Queued   bool        `json:"-"` // only connections that wait to be accepted keep the server busy
}

// JSON returns the view as one line of JSON.
func (v View) JSON() string { return report.Encode(v) }

// Peer is an address with open connections.
type Peer = traffic.Peer

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
	if err := new(proc.Processes).Reserve(); err != nil {
		return err
	}
	now := time.Now()
	v := viewer{start: now.Add(-known), givesUp: now.Add(p.traffic.MaxSilence)}
	sampling := p.observeConfig()
	sampling.Start = v.start
	sampling.WholePIDNamespace = true
	sampling.Rescan = findEvery
	sampling.TopPeers = topPeers
	snapshots := make(chan observe.Snapshot, 1)
	sampler := observe.Start(sampling, snapshots)
	due := time.Tick(showEvery)
	for {
		select {
		case snapshot := <-snapshots:
			select {
			case <-due:
				if hasRoom() {
					err = show(v.view(time.Now(), &snapshot))
				}
			default:
			}
			sampler.Continue(false)
		default:
		}
		if err != nil {
			return err
		}
		switch sigcatch.Next(time.Time{}) { // waits for the next snapshot, too
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

// viewer makes views of snapshots.
type viewer struct {
	start    time.Time // of what counts
	givesUp  time.Time // when requests may first be given up
	accepted int       // connections, as of the last view
}

// view returns s as a View, and records the values to which the next view refers. Requests
// that the tracker has given up are in flight for a hold, which counts the silence of a request
// from its own start.
func (v *viewer) view(now time.Time, s *observe.Snapshot) View {
	t := &s.Traffic
	givenUp := 0
	if now.Before(v.givesUp) {
		givenUp = t.LeftOut.GivenUp
	}
	view := View{
		Schema:   report.Schema,
		Time:     now,
		Observer: report.NullIfZero(s.Observer),
		Scope:    s.Scope.Method.String(),
		Trouble:  s.Trouble,
		Ports:    atMost(s.Scope.Ports),
		UDP:      atMost(s.Scope.UDP),
		Unix:     atMost(s.Scope.Unix),
		Open:     t.Open,
		InFlight: t.InFlight + givenUp,
		New:      t.Accepted - v.accepted,
		Accepted: t.Accepted,
		LastNew:  v.ago(now, t.LastNew),
		LastByte: v.ago(now, t.LastByte),
		Settled:  s.Verdict.Settled,
		Quiet:    s.Verdict.Quiet && givenUp == 0,
		Drained:  s.Verdict.Drained,
		Peers:    atMost(s.Peers),
		Probes:   []ProbeView{},
		Queued:   t.Cause.Kind == traffic.AcceptQueue,
	}
	for _, p := range t.Patterns {
		view.Probes = append(view.Probes, ProbeView{p.Peer, p.Port, p.Received, p.Period.Milliseconds()})
	}
	v.accepted = t.Accepted
	return view
}

// ago returns the milliseconds from at to now, nil if at is not after the start.
func (v *viewer) ago(now, at time.Time) *int64 {
	if !at.After(v.start) {
		return nil
	}
	return new(now.Sub(at).Milliseconds())
}

// maxShown is how many ports and paths a view lists. A view then fits into a pipe at
// once: POLLOUT promises room for a page at most.
const maxShown = 20

// atMost returns the first maxShown of a list, never nil.
func atMost[T any](list []T) []T { return append([]T{}, list[:min(len(list), maxShown)]...) }
