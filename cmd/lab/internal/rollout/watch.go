package rollout

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// startWatch starts lameduck watch in the replica's network namespace, if nobody else resets connections
// there, and returns when watch has seen the server. Silence as long as the longest lag ends watch.
// A rollout has watch in a quick run only: a longer one leaves the processors to the clients.
func (t *trial) startWatch(ctx context.Context, r *replica) {
	words := []string{t.o.lameduck, "watch", "--json"}
	switch {
	case t.o.dir != "" && t.o.quick:
		words = append([]string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", r.Process.Pid)}, words...)
		words = append(words, "--grace-period="+(2*t.server.Grace).String(), "--quiet-for="+longestLag.String())
	case t.o.lone && t.loses():
		words = append(words, "--grace-period="+t.server.Grace.String(), fmt.Sprintf("--count-port=%d", r.port))
	default:
		return
	}
	r.watch = stage.Start(stage.Command(ctx, words...))
	r.await(func(lines []stage.Report) bool { return len(lines) > 0 })
}

// await waits for lines of watch, and returns the last.
func (r *replica) await(enough func(lines []stage.Report) bool) *stage.Report {
	var lines []stage.Report
	must.Be(must.Soon(patience, func() bool {
		gone := r.watch.HasGone()
		lines = stage.Reports(r.watch.Said())
		return gone || enough(lines)
	}) && len(lines) > 0, "no verdict: %s", r.watch.Said())
	return &lines[len(lines)-1]
}

// endWatch ends watch beside the latest stop, to which tally gives the failures up to now, when watch
// has counted up to now.
func (t *trial) endWatch() {
	n := len(t.Stops)
	if n == 0 || t.replicas[n-1].watch == nil {
		return
	}
	r, now := t.replicas[n-1], time.Now()
	r.await(func(lines []stage.Report) bool {
		last := lines[len(lines)-1]
		return last.Refused != nil && last.Time.After(now)
	})
	r.watch.Process.Signal(syscall.SIGINT)
	verdict := r.await(func([]stage.Report) bool { return false })
	must.Be(verdict.Message != "" && verdict.Cut != nil && verdict.Refused != nil, "no verdict: %s", r.watch.Said())
	t.Stops[n-1].Watch = verdict
}

// judgeWatch judges lameduck watch by the clients. In the stops of a trial, taken one by one, the
// counts may be a few apart: when a server dies in the middle of a response, the kernel shows no
// request that waits for an answer, and a response that was on its way may yet arrive. Long-lived
// connections are left out: watch counts those that wait for an answer.
func (f findings) judgeWatch(say func(holds bool, format string, args ...any)) {
	const few, percent = 3, 5
	stops, counted, failed, broken := 0, 0, 0, ""
	for _, t := range f {
		apart, lost := 0, 0
		for _, s := range t.Stops {
			if s.Watch == nil || t.Stalled || t.server.has("websocket") {
				continue
			}
			stops++
			n := *s.Watch.Cut + *s.Watch.Refused
			counted += n
			lost += s.Losses()
			apart += max(n-s.Losses(), s.Losses()-n)
		}
		failed += lost
		if apart > max(few, lost*percent/100) {
			broken += fmt.Sprintf("; %s | %s: %d apart", t.Server, t.Contender, apart)
		}
	}
	if stops > 0 {
		say(broken == "", "lameduck watch, in %d stops, counted %d lost requests, and the clients %d%s",
			stops, counted, failed, broken)
	}
}
