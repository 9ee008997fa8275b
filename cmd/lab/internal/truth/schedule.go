package truth

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// row is a case with the results of its trials.
type row struct {
	*plays.Row
	results []*result
	broken  int // trials that could not be played
	again   int // trials that were played again because of a stall
}

const stagger = 50 * ms

// scheduler plays trials in folders of a folder, which has the programs.
type scheduler struct {
	dir    string
	repeat int        // trials of each row
	retry  int        // more trials of a row that is wrong after one
	mu     sync.Mutex // guards the results of all rows
}

// play plays the precise rows after the others, trials with a long lead first.
func (sch *scheduler) play(ctx context.Context, rows []*row) {
	for _, precise := range []bool{false, true} {
		var jobs []*row
		for _, r := range rows {
			if r.Precise == precise {
				jobs = append(jobs, slices.Repeat([]*row{r}, sch.repeat)...)
			}
		}
		slices.SortStableFunc(jobs, func(a, b *row) int { return int(b.Lead() - a.Lead()) })
		atATime := map[bool]int{false: 32, true: 4}[precise] // most of them sleep
		stage.Beside(ctx, jobs, atATime, stagger, func(r *row) {
			sch.playRow(ctx, r)
			if r.failures() > 0 {
				again := slices.Repeat([]*row{r}, sch.retry)
				stage.Beside(ctx, again, sch.retry, stagger, func(r *row) { sch.playRow(ctx, r) })
			}
		})
	}
}

// playRow plays one trial of a row. A wrong result of a trial in which the machine stood
// still says little: the trial is played again, up to twice.
func (sch *scheduler) playRow(ctx context.Context, r *row) {
	found := sch.playTrial(ctx, r.Name)
	again := 0
	for ; again < 2 && found.Stalled > maxStall(r.Row) && r.Wrong(found.Verdict); again++ {
		found = sch.playTrial(ctx, r.Name)
	}
	sch.mu.Lock()
	defer sch.mu.Unlock()
	r.again += again
	if found.Err != "" {
		r.broken++
		fmt.Fprintf(os.Stderr, "lab: a trial of %s could not be played: %s\n", r.Name, found.Err)
	} else {
		r.results = append(r.results, found)
	}
}

// playTrial plays one trial in a process of its own, PID 1 of its namespaces.
func (sch *scheduler) playTrial(ctx context.Context, name string) *result {
	r := &result{}
	var noise strings.Builder
	ctx, cancel := context.WithTimeout(ctx, 600*s) // more than any trial takes
	defer cancel()
	err := must.Try(func() {
		dir := must.Get(os.MkdirTemp(sch.dir, "trial-"))
		defer os.RemoveAll(dir)
		must.Do(os.Chmod(dir, 0o755)) // some servers run as another user
		cmd := stage.Init(ctx, "--net", sch.dir+"/lab", "play", name, dir)
		cmd.Stderr = &noise
		must.Do(json.Unmarshal(must.Get(cmd.Output()), r))
	})
	if err != nil {
		r.Err = fmt.Sprintf("%v\n%s", err, &noise)
	}
	return r
}
