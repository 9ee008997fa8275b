package cluster

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// row is a way to stop, and the outcome under one kind of load. rows.txt has the columns.
type row struct {
	name     string
	manifest string
	words    string
	hooks    string
	kinds    []string
	kept     bool // connections are kept
	outcome
}

// is reports whether the row is of a kind.
func (r *row) is(kind string) bool { return slices.Contains(r.kinds, kind) }

// outcome is what cluster.sh prints of a row.
type outcome struct {
	Reason string // why the row was skipped
	Tally  load.Tally
	Failed []int // requests, by rollout
	Stops  []stop
}

//go:embed rows.txt
var table string

// rows returns the usual remedies and lameduck, before a server that dies of TERM and
// before a server that TERM stops gracefully, and then each manifest as written.
func rows() (all []row) {
	init, under := "no init", ""
	if _, err := exec.LookPath("tini-static"); err == nil {
		init, under = "tini", "/tini, --, "
	}
	words := strings.NewReplacer("INIT", init, "UNDER ", under)
	for _, columns := range stage.Rows(words.Replace(table)) {
		all = append(all, row{name: columns[0], manifest: columns[1], words: columns[2], hooks: columns[3],
			kinds: strings.Fields(columns[4])})
	}
	return all
}

// pool is the number of connections that the client keeps.
const pool = 24

// attempts is how often a row is played while the load stands still: such a machine is
// too busy for a verdict.
const attempts = 3

// playAll plays the chosen rows one after the other, and prints each.
func (c *cluster) playAll(ctx context.Context, o *options) (done []row, err error) {
	for _, kept := range []bool{false, true} {
		for _, r := range rows() {
			r.kept = kept
			if kept && r.is("new") || !o.only.MatchString(r.String()) {
				continue
			}
			for range attempts {
				if err := c.play(ctx, &r, o); err != nil {
					return done, fmt.Errorf("%s: %w", &r, err)
				}
				if !r.stalled() {
					break
				}
				fmt.Fprintf(os.Stderr, "%s: the load stood still for %d ms (load average %.1f); again\n",
					&r, r.Tally.LateMS, r.Tally.Load)
			}
			fmt.Fprintln(os.Stderr, r.text())
			done = append(done, r)
		}
	}
	return done, nil
}

// play plays a row.
func (c *cluster) play(ctx context.Context, r *row, o *options) error {
	manifest := examples + r.manifest
	level, profile := "restricted", "seccompProfile: {type: RuntimeDefault}"
	if r.is("baseline") {
		level, profile = "baseline", ""
	}
	if r.manifest == "web.yaml" {
		text, err := os.ReadFile(here + "web.yaml")
		if err != nil {
			return err
		}
		manifest = c.work + "/web.yaml"
		changed := strings.NewReplacer("COMMAND", r.words, "LIFECYCLE", r.hooks, "PROFILE", profile).Replace(string(text))
		if err := os.WriteFile(manifest, []byte(changed), 0o644); err != nil {
			return err
		}
	}
	conns, rollouts := 0, 1
	if r.kept {
		conns = pool
	}
	if r.kept && r.is("dies") {
		rollouts = o.rollouts
	}
	env := fmt.Sprintf("CONNS=%d RATE=%d ROLLOUTS=%d OPTIONAL=%v POLICY=%v LEVEL=%s",
		conns, o.rate, rollouts, r.is("optional"), r.is("policy"), level)
	text, err := c.script(ctx, "play", append(strings.Fields(env), "MANIFEST="+manifest)...)
	if err != nil {
		return err
	}
	r.outcome = outcome{}
	return json.Unmarshal([]byte(text), &r.outcome)
}

// stalled reports whether the load was more than a second behind the plan.
func (r *row) stalled() bool { return r.Tally.LateMS > 1000 }

// String has the kind of connections: a new one for each request, or kept.
func (r *row) String() string {
	if r.kept {
		return r.name + ", kept connections"
	}
	return r.name + ", new connections"
}

// text is printed as soon as a row is done.
func (r *row) text() string {
	if r.Reason != "" {
		return fmt.Sprintf("%s: skipped: %s", r, r.Reason)
	}
	return fmt.Sprintf("%s: %d of %d failed", r, load.Failed(r.Tally.Kinds), load.Ended(r.Tally.Kinds))
}

// took returns the median and the longest stop, in seconds.
func (r *row) took() (median, longest float64) {
	var all []float64
	for _, s := range r.Stops {
		all = append(all, s.Took)
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)-1]
}

// stop is the end of one pod as the API shows the end, to the second.
type stop struct {
	Took     float64  // seconds
	Messages []string // the containers' termination messages
}

// held matches lameduck's report at the end of a hold: what was at risk, and why the hold ended.
var held = regexp.MustCompile(`: (?:([^:]+): )?held [0-9.]+ s \((\w+)[^)]*\)`)

// reports returns the matches of held in the containers' messages.
func (s stop) reports() (all [][]string) {
	for _, text := range s.Messages {
		if m := held.FindStringSubmatch(text); m != nil {
			all = append(all, m)
		}
	}
	return all
}
