package rollout

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// watcher is lameduck watch beside a replica that is to be stopped.
type watcher struct {
	*stage.Program
	out   *os.File
	lines *bufio.Scanner // of out
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
func (t *trial) watch(ctx context.Context, r *replica) {
	if t.o.dir == "" && !(t.o.lone && t.loses()) {
		return
	}
	words := []string{t.o.lameduck, "watch", "--json"}
	if t.o.dir == "" {
		_, port, _ := net.SplitHostPort(r.addr)
		words = append(words, "--grace-period="+t.server.grace.String(), "--count-port="+port)
	} else {
		words = append([]string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", r.Process.Pid)}, words...)
		words = append(words, "--grace-period="+(2*t.server.grace).String(),
			"--quiet-for="+t.o.scale.of(longestLag).String())
	}
	out, in, err := os.Pipe() // has room for the lines of a stop
	must.Do(err)
	cmd := stage.Command(ctx, words...)
	cmd.Stdout = in
	w := &watcher{stage.Start(cmd), out, bufio.NewScanner(out)}
	in.Close() // or out would have no end
	r.watch = w
	w.next()
}

// endWatch ends watch beside the latest stop, to which tally gives the failures up to now.
func (t *trial) endWatch() {
	if n := len(t.Stops); n > 0 && t.replicas[n-1].watch != nil {
		t.Stops[n-1].Watch = t.replicas[n-1].watch.verdict()
	}
}

// next returns the next line.
func (w *watcher) next() *cost {
	c := &cost{}
	must.Be(w.lines.Scan() && json.Unmarshal(w.lines.Bytes(), c) == nil, "no verdict: %s", w.Said())
	return c
}

// verdict returns what watch counted up to now.
func (w *watcher) verdict() (c *cost) {
	now := time.Now()
	for c = w.next(); c.EndedMS == nil; c = w.next() {
		if c.Refused != nil && c.Time.After(now) {
			w.Process.Signal(syscall.SIGINT)
		}
	}
	must.Be(c.Cut != nil && c.Refused != nil, "lameduck watch cannot count: %s", c.Message)
	return c
}

// comparison is watch's count beside that of the clients, over some stops.
type comparison struct{ stops, counted, failed, apart int }

func (c *comparison) add(s *stop) {
	c.stops++
	n, failed := *s.Watch.Cut+*s.Watch.Refused, s.failed()
	c.counted += n
	c.failed += failed
	c.apart += max(n-failed, failed-n)
}

// differs reports whether the counts of the stops, taken one by one, are more than a few apart. A
// few are: when a server dies in the middle of a response, the kernel shows no request that waits
// for an answer, and a response that was on its way may yet arrive.
func (c *comparison) differs() bool {
	const few, percent = 3, 5
	return c.apart > max(few, c.failed*percent/100)
}

// judgeWatch judges lameduck watch by the clients, for each contender and server. Long-lived
// connections are left out: the clients count them all, and watch those that wait for an answer.
func (f *findings) judgeWatch(say func(holds bool, format string, args ...any)) {
	all, rows, broken := comparison{}, map[string]*comparison{}, ""
	for _, t := range f.Trials {
		name := t.Server + " | " + t.Contender
		for _, s := range t.Stops {
			if s.Watch == nil || t.Stalled || t.server.has("websocket") {
				continue
			}
			if rows[name] == nil {
				rows[name] = &comparison{}
			}
			rows[name].add(s)
			all.add(s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if r := rows[name]; r.differs() {
			broken += fmt.Sprintf("; %s: %d and %d, %d apart", name, r.counted, r.failed, r.apart)
		}
	}
	if all.stops > 0 {
		say(broken == "", "lameduck watch, in %d stops, counted %d lost requests, and the clients %d, %d apart%s",
			all.stops, all.counted, all.failed, all.apart, broken)
	}
}

// print prints the two lines about the end of one port, or why there are none.
func (c *cost) print(out io.Writer, shared error) {
	if c == nil {
		fmt.Fprintf(out, "  (left out: it would count what other programs of this network lose, too: %v)\n", shared)
		return
	}
	for _, line := range strings.SplitN(c.Message, "; ", 2) {
		fmt.Fprintf(out, "  lameduck: watch: %s\n", line)
	}
}
