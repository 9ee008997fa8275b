//go:build linux

package shim

import (
	"cmp"

	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/termlog"
	"github.com/lameduck-init/lameduck/shim/internal/watch"
)

// Watch follows every listener of the network namespace, whoever it belongs to, and shows the
// traffic once a second, unless onlyStops is set. TERM says that a stop begins, which others carry
// out. When every listener has gone, and for QuietFor nobody was refused, and a second before the
// end of the grace period at the latest, Watch says what the stop has cost, and returns if TERM has
// come. INT, HUP, QUIT and a second TERM end Watch after one more sample (half a second later if a
// listener has gone); another of them ends it at once. print gets each line, and its error ends Watch.
func Watch(cfg Config, onlyStops bool, print func(line string) error) error {
	proc.HideGoEnv()
	p, err := plan.New(&cfg, plan.Place{Uncatchable: sigcatch.Uncatchable})
	if err != nil {
		return err
	}
	log := termlog.New(p.TerminationLog)
	defer log.Flush()
	if err := cmp.Or(new(proc.Processes).Reserve(0), termlogError(p, log.Write())); err != nil {
		return err
	}
	return watch.Run(p, onlyStops, print, log)
}
