package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// row is a way to stop, and the outcome under one kind of load.
type row struct {
	name    string
	objects func() ([]runtime.Object, error)
	rowKind

	reason string // why the row was skipped
	tally  load.Tally
	failed []int // requests, by rollout
	stops  []stop
}

// rowKind says how a row is judged.
type rowKind struct {
	ours     bool // lameduck holds
	dies     bool // TERM kills the server
	fixed    bool // lameduck is compared with this fixed delay
	quiet    bool // a hold until quiet, in a grace period that leaves time for the end "kept"
	loses    bool // a request must fail, or the load is blind
	optional bool // a cluster may refuse the objects
	policy   bool // with the policy of fleet/policy.yaml
	kept     bool // connections are kept
}

// rows returns the usual remedies and lameduck, before a server that dies of TERM and
// before a server that TERM stops gracefully, on the pods of install.yaml, and then each
// manifest as written.
func rows() []row {
	init := "no init"
	if _, ok := tiniPath(); ok {
		init = "tini"
	}
	sleep := fmt.Sprintf("preStop: sleep %d, %s", nap, init)
	return []row{
		{name: init + ", dies", objects: rival(dies, 0), rowKind: rowKind{dies: true, loses: true}},
		{name: sleep + ", dies", objects: rival(dies, nap), rowKind: rowKind{dies: true, fixed: true}},
		{name: untilQuiet + ", dies", objects: under(untilQuiet, dies), rowKind: rowKind{ours: true, dies: true, quiet: true}},
		{name: untilSettled + ", dies", objects: under(untilSettled, dies), rowKind: rowKind{ours: true, dies: true}},
		{name: init + ", finishes", objects: rival(finishes, 0)},
		{name: sleep + ", finishes", objects: rival(finishes, nap)},
		{name: untilQuiet + ", finishes", objects: under(untilQuiet, finishes), rowKind: rowKind{ours: true, quiet: true}},
		{name: untilSettled + ", finishes", objects: under(untilSettled, finishes), rowKind: rowKind{ours: true}},
		{name: "entrypoint.yaml", objects: given("entrypoint.yaml"), rowKind: rowKind{ours: true}},
		{name: "install.yaml", objects: given("install.yaml"), rowKind: rowKind{ours: true}},
		{name: "image-volume.yaml", objects: given("image-volume.yaml"), rowKind: rowKind{ours: true, optional: true}},
		{name: "hold.yaml", objects: given("hold.yaml"), rowKind: rowKind{ours: true}},
		{name: "neighbors.yaml", objects: given("neighbors.yaml"), rowKind: rowKind{ours: true}},
		{name: "fleet/component", objects: built("fleet/example"), rowKind: rowKind{ours: true}},
		{name: "fleet/policy.yaml", objects: given("fleet/example/web.yaml"), rowKind: rowKind{ours: true, optional: true, policy: true}},
	}
}

// The conditions of the rows, with no number given.
const (
	untilQuiet   = "--until=quiet"
	untilSettled = "--until=settled"
)

// pool is the number of connections that the client keeps.
const pool = 24

// attempts is how often a row is played while the load stands still: such a machine is
// too busy for a verdict.
const attempts = 3

// still bounds the load's delay behind the plan.
const still = time.Second

// playAll plays the chosen rows one after the other, and prints each.
func (c *cluster) playAll(ctx context.Context, o *options) (done []row, err error) {
	for _, kept := range []bool{false, true} {
		if kept && !o.kept || !kept && !o.new {
			continue
		}
		for _, r := range rows() {
			if !o.only.MatchString(r.name) {
				continue
			}
			r.kept = kept
			for try := 0; try < attempts && r.reason == ""; try++ {
				r.forget()
				if err := c.play(ctx, &r, o); err != nil {
					return done, fmt.Errorf("%s: %w", r.name, err)
				}
				if !r.stalled() {
					break
				}
				fmt.Fprintf(os.Stderr, "%s: the load stood still for %d ms (load average %.1f); again\n", r.name, r.tally.LateMS, r.tally.Load)
			}
			fmt.Fprintln(os.Stderr, r.text(o.messages))
			done = append(done, r)
		}
	}
	return done, nil
}

// forget removes the outcome.
func (r *row) forget() {
	r.tally = load.Tally{}
	r.failed = nil
	r.stops = nil
}

// stalled reports whether the machine was too busy for a verdict.
func (r *row) stalled() bool { return r.tally.LateMS > int(still.Milliseconds()) }

// conns returns the number of connections that the client keeps, or 0.
func (r *row) conns() int {
	if r.kept {
		return pool
	}
	return 0
}

// connections returns "new" for a connection per request, or "kept".
func (r *row) connections() string { return map[bool]string{false: "new", true: "kept"}[r.kept] }

// text is printed as soon as a row is done.
func (r *row) text(messages bool) string {
	if r.reason != "" {
		return fmt.Sprintf("%s, %s connections: skipped: %s", r.name, r.connections(), r.reason)
	}
	text := fmt.Sprintf("%s, %s connections: %d of %d failed", r.name, r.connections(), r.tally.Failed(), r.tally.Ended())
	for _, s := range r.stops {
		text += fmt.Sprintf("\n  stopped in %.1f s %s", s.took.Seconds(), s.holds())
		if messages {
			text += "\n    " + strings.Join(s.messages, "\n    ")
		}
	}
	return text
}

// took returns the median and the longest stop.
func (r *row) took() (median, longest time.Duration) {
	var all []time.Duration
	for _, s := range r.stops {
		all = append(all, s.took)
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, all[len(all)-1]
}
