package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lameduck-init/lameduck/testdata/k8s/tally"
)

// row is a way to stop, and what came of it under one kind of load.
type row struct {
	name    string
	objects func() ([]runtime.Object, error)
	ours    bool // lameduck holds, and nothing may be lost
	loses   bool // something, or the load sees nothing
	may     bool // a cluster may refuse it
	policy  bool // with the fleet's
	kept    bool

	reason string // why it was skipped
	tally  tally.Tally
	stops  []stop
}

// rows are all of them: what people do without lameduck, on the pods of install.yaml,
// and then each manifest as it is.
func rows() []row {
	rest := fmt.Sprintf("preStop: sleep %d", nap)
	if _, ok := tiniPath(); ok {
		rest += ", tini"
	}
	return []row{
		{name: "TERM at once", objects: rival(atOnce), loses: true},
		{name: "the server's own signal at once", objects: rival(own)},
		{name: rest, objects: rival(sleep)},
		{name: "entrypoint.yaml", objects: given("entrypoint.yaml"), ours: true},
		{name: "install.yaml", objects: given("install.yaml"), ours: true},
		{name: "image-volume.yaml", objects: given("image-volume.yaml"), ours: true, may: true},
		{name: "hold.yaml", objects: given("hold.yaml"), ours: true},
		{name: "neighbours.yaml", objects: given("neighbours.yaml"), ours: true},
		{name: "fleet/component", objects: built("fleet/example"), ours: true},
		{name: "fleet/policy.yaml", objects: given("fleet/example/web.yaml"), ours: true, may: true, policy: true},
	}
}

// again is how often a row is played that had the load stand still: the machine was
// too busy then to say anything.
const again = 3

// still is how far behind its plan the load may be.
const still = time.Second

// playAll plays all rows that are asked for, one after the other, and says each as it
// is done.
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
			for try := 0; try < again && r.reason == ""; try++ {
				r.tally, r.stops = tally.Tally{}, nil
				if err := c.play(ctx, &r, o); err != nil {
					return done, fmt.Errorf("%s: %w", r.name, err)
				}
				if !r.stalled() {
					break
				}
				fmt.Fprintf(os.Stderr, "%s: the load stood still for %d ms (load average %.1f); again\n", r.name, r.tally.LateMS, r.tally.Load)
			}
			fmt.Fprintln(os.Stderr, r.String())
			done = append(done, r)
		}
	}
	return done, nil
}

// stalled reports whether the machine was too busy.
func (r *row) stalled() bool { return r.tally.LateMS > int(still.Milliseconds()) }

// connections says how the load has them: a new one for each request, or kept ones.
func (r *row) connections() string { return map[bool]string{false: "new", true: "kept"}[r.kept] }

// String is what is said as soon as a row is done.
func (r *row) String() string {
	if r.reason != "" {
		return fmt.Sprintf("%s, %s connections: skipped: %s", r.name, r.connections(), r.reason)
	}
	text := fmt.Sprintf("%s, %s connections: %d of %d failed", r.name, r.connections(), r.tally.Failed(), r.tally.Ended())
	for _, s := range r.stops {
		text += fmt.Sprintf("\n  stopped in %.1f s %s", s.took.Seconds(), s.said())
	}
	return text
}

// took is the median and the longest of the stops.
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
