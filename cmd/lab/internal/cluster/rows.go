package cluster

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
	"github.com/lameduck-init/lameduck/internal/tables"
)

// row is a way to stop, and the outcome under one kind of load. rows.txt has the columns.
type row struct {
	Name     string
	Manifest string
	Words    string
	Hooks    string
	Kinds    []string
	kept     bool // connections are kept
	outcome
}

// is reports whether the row is of a kind.
func (r *row) is(kind string) bool { return slices.Contains(r.Kinds, kind) }

// outcome is what cluster.sh prints of a row.
type outcome struct {
	Reason string // why the row was skipped
	Tally  load.Tally
	Failed []int // requests, by rollout
	Stops  []stop
}

// stop is the end of one pod as the API shows the end, to the second.
type stop struct {
	Took     float64  // seconds
	Messages []string // the containers' termination messages
}

//go:embed rows.txt
var table string

// rows returns the usual remedies and lameduck, before a server that dies of TERM and
// before a server that TERM stops gracefully, and then each manifest as written.
func rows() []*row { return tables.Read[row](table, strings.Fields) }

// playAll plays the chosen rows one after the other, and prints each. A row in which the load stood
// still, on a machine that is too busy for a verdict, is played again.
func (c *cluster) playAll(ctx context.Context, out io.Writer) (done []*row) {
	const attempts = 3
	for _, kept := range []bool{false, true} {
		for _, r := range rows() {
			r.kept = kept
			if kept && r.is("new") || !c.only.MatchString(r.String()) {
				continue
			}
			for range attempts {
				c.play(ctx, r)
				fmt.Fprintf(out, "%s: %s\n", r, r.text())
				if !r.stalled() {
					break
				}
			}
			done = append(done, r)
		}
	}
	return done
}

// The client makes rate requests a second, and keeps a pool of connections, or none.
const (
	rate = 200
	pool = 24
)

// play plays a row.
func (c *cluster) play(ctx context.Context, r *row) {
	manifest := examples + r.Manifest
	level, profile := "restricted", "seccompProfile: {type: RuntimeDefault}"
	if r.is("baseline") {
		level, profile = "baseline", ""
	}
	if r.Manifest == "web.yaml" {
		words := strings.NewReplacer("COMMAND", r.Words, "LIFECYCLE", r.Hooks, "PROFILE", profile)
		manifest = c.work + "/web.yaml"
		must.Write(manifest, words.Replace(must.Read(here+"web.yaml")))
	}
	conns, rollouts := 0, 1
	if r.kept {
		conns = pool
	}
	if r.kept && r.is("dies") {
		rollouts = c.rollouts
	}
	env := fmt.Sprintf("CONNS=%d RATE=%d ROLLOUTS=%d OPTIONAL=%v POLICY=%v LEVEL=%s",
		conns, rate, rollouts, r.is("optional"), r.is("policy"), level)
	text := must.Get(c.script(ctx, "play", append(strings.Fields(env), "MANIFEST="+manifest)...))
	r.outcome = outcome{}
	must.Do(json.Unmarshal([]byte(text), &r.outcome))
}

// stalled reports whether the load was more than a second behind the plan.
func (r *row) stalled() bool { return r.Tally.LateMS > 1000 }

// String has the kind of connections: a new one for each request, or kept.
func (r *row) String() string {
	if r.kept {
		return r.Name + ", kept connections"
	}
	return r.Name + ", new connections"
}

// held matches lameduck's report at the end of a hold: what was at risk, and why the hold ended.
var held = regexp.MustCompile(`: (?:([^:]+): )?held [0-9.]+ s \((\w+)[^)]*\)`)

// reports returns the matches of held in the containers' messages.
func (s stop) reports() [][]string {
	return held.FindAllStringSubmatch(strings.Join(s.Messages, "\n"), -1)
}

// text tells what became of the row, with the median and the longest stop, as the API shows them, to
// the second, and why how many holds ended.
func (r *row) text() string {
	if len(r.Stops) == 0 {
		return "no stop: " + r.Reason
	}
	var took []float64
	ends := map[string]int{}
	for _, s := range r.Stops {
		took = append(took, s.Took)
		for _, m := range s.reports() {
			ends[m[2]]++
			if strings.HasPrefix(m[1], "nothing in flight") {
				ends["with nothing in flight"]++
			}
		}
	}
	slices.Sort(took)
	return fmt.Sprintf("%d failed of %d (by rollout: %v; %s), up to %d ms late; stop to exit %.0f s, at most %.0f s; ended by %v",
		load.Failed(r.Tally.Kinds), load.Ended(r.Tally.Kinds), r.Failed, load.Summary(r.Tally.Kinds), r.Tally.LateMS,
		took[len(took)/2], took[len(took)-1], ends)
}
