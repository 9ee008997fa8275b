package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// watcher is lameduck watch beside a replica that is to be stopped.
type watcher struct {
	*stage.Program
	lines *json.Decoder
}

// cost is what watch counted of a stop, in its last line, and in each line before what it has
// counted so far. Nil is not known, or not ended.
type cost struct {
	Time    time.Time `json:"time"`
	Message string    `json:"message"`
	Cut     *int      `json:"cut"`
	Refused *int      `json:"refused"`
	EndedMS *int64    `json:"server_ended_ms"` // in the last line alone
}

// watch starts lameduck watch in the replica's network namespace, if nobody else resets connections
// there, and returns when watch has seen the server. Silence as long as the longest lag ends watch.
// A rollout has watch in a quick run only: a longer one leaves the processors to the clients.
func (t *trial) watch(ctx context.Context, r *replica) {
	words := []string{t.o.lameduck, "watch", "--json"}
	switch {
	case t.o.dir != "" && t.o.quick:
		words = append([]string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", r.Process.Pid)}, words...)
		words = append(words, "--grace-period="+(2*t.server.grace).String(), "--quiet-for="+longestLag.String())
	case t.o.lone && t.loses():
		words = append(words, "--grace-period="+t.server.grace.String(), fmt.Sprintf("--count-port=%d", r.port))
	default:
		return
	}
	out, in, err := os.Pipe() // has room for the lines of a stop
	must.Do(err)
	cmd := stage.Command(ctx, words...)
	cmd.Stdout = in
	r.watch = watcher{stage.Start(cmd), json.NewDecoder(out)}
	in.Close() // or out would have no end
	r.watch.next()
}

// endWatch ends watch beside the latest stop, to which tally gives the failures up to now.
func (t *trial) endWatch() {
	if n := len(t.Stops); n > 0 && t.replicas[n-1].watch.Program != nil {
		t.Stops[n-1].Watch = t.replicas[n-1].watch.verdict()
	}
}

// next returns the next line.
func (w watcher) next() *cost {
	c := &cost{}
	err := w.lines.Decode(c)
	must.Be(err == nil, "no verdict: %w: %s", err, w.Said())
	return c
}

// verdict returns what watch counted up to now.
func (w watcher) verdict() (c *cost) {
	now := time.Now()
	for c = w.next(); c.EndedMS == nil; c = w.next() {
		if c.Refused != nil && c.Time.After(now) {
			w.Process.Signal(syscall.SIGINT)
		}
	}
	must.Be(c.Cut != nil && c.Refused != nil, "lameduck watch cannot count: %s", c.Message)
	return c
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
		say(broken == "", "lameduck watch, in %d stops, counted %d lost requests, and the clients %d%s", stops, counted, failed, broken)
	}
}
