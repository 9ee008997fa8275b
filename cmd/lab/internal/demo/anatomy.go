package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// anatomy is one stop of lameduck: the report, and the connections that the balancer made
// to the stopped replica. Times are milliseconds from the stop.
type anatomy struct {
	Command     string       `json:"command"`
	GraceMS     int64        `json:"grace_ms"`
	LagMS       int64        `json:"lag_ms"` // until the balancer lets go
	Report      stopReport   `json:"report"`
	Connections []connection `json:"connections"`
}

// stopReport has the figures of lameduck's last line that the picture shows; see
// docs/production.md.
type stopReport struct {
	Trigger    string       `json:"trigger"`
	HeldMS     int64        `json:"held_ms"`
	Ended      string       `json:"ended"`
	FloorMS    int64        `json:"floor_ms"`
	CeilingMS  int64        `json:"ceiling_ms"`
	Accepted   int          `json:"accepted"`
	LastNewMS  int64        `json:"last_new_ms"`
	LastByteMS int64        `json:"last_byte_ms"`
	InFlight   int          `json:"in_flight"`
	Sent       []sentSignal `json:"sent"`
	ExitCode   *int         `json:"exit_code"`
	UsedMS     int64        `json:"grace_used_ms"`
}

type sentSignal struct {
	Signal string `json:"signal"`
	AtMS   int64  `json:"at_ms"`
}

type connection struct {
	FromMS int64 `json:"from_ms"`
	ToMS   int64 `json:"to_ms"`
}

// The stop of the anatomy: a floor of 2 s, a balancer that lets go after 5 s, and some
// requests a second that take up to 1.4 s.
const (
	anatomyLag   = 5 * time.Second
	anatomyWarm  = 3 * time.Second // for requests to be in flight at the stop
	anatomyRate  = 20
	anatomyGrace = 30 * time.Second
)

// jsonLog makes the report readable for programs.
const jsonLog = "--log-format=json"

// runAnatomy plays the stop, or reads figures, and writes the figures and the picture.
func (o *options) runAnatomy(ctx context.Context, out io.Writer) error {
	a := &anatomy{}
	if o.from != "" {
		if err := readJSON(o.from, a); err != nil {
			return err
		}
		return o.write(a, func() string { return drawAnatomy(a) })
	}
	fmt.Fprintf(out, "one stop of lameduck under load: this takes %v and more\n", anatomyWarm+anatomyLag)
	plays, err := perform(func() ([]*play, error) {
		plays := []*play{anatomyPlay(o.lameduck)}
		return plays, playAll(ctx, plays)
	}, func(reason error) { fmt.Fprintf(out, "%v: once more\n", reason) })
	if err != nil {
		return err
	}
	a, err = anatomyOf(plays[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d new connections, held %d ms, %s\n", a.Report.Accepted, a.Report.HeldMS, a.Report.Ended)
	return o.write(a, func() string { return drawAnatomy(a) })
}

// anatomyPlay returns the stop. Clients come at random, as independent clients do.
func anatomyPlay(lameduck string) *play {
	const shortest, longest = 100 * time.Millisecond, 1400 * time.Millisecond
	random := rand.New(rand.NewPCG(1, 1))
	c := &contender{name: "lameduck", server: []string{"graceful"}, prefix: []string{lameduck,
		"--delay=2", "--until=quiet", fmt.Sprintf("--grace-period=%.0f", anatomyGrace.Seconds()), jsonLog, "--"}}
	return &play{contender: c, lag: anatomyLag, warm: anatomyWarm, row: &row{},
		gap: func() time.Duration { return time.Duration(random.ExpFloat64() * float64(time.Second) / anatomyRate) },
		think: func() time.Duration {
			return (shortest + time.Duration(random.Int64N(int64(longest-shortest)))).Round(time.Millisecond)
		}}
}

// anatomyOf returns the figures of a stop. The error says that the report and the
// balancer contradict each other.
func anatomyOf(p *play) (*anatomy, error) {
	words := slices.DeleteFunc(slices.Clone(p.prefix[1:]), func(word string) bool { return word == jsonLog })
	a := &anatomy{Command: "lameduck " + strings.Join(words, " ") + " server",
		GraceMS: anatomyGrace.Milliseconds(), LagMS: anatomyLag.Milliseconds()}
	lines := strings.Split(strings.TrimSpace(p.old.stderr.String()), "\n")
	last := lines[len(lines)-1]
	if err := json.Unmarshal([]byte(last), &a.Report); err != nil {
		return nil, fmt.Errorf("cannot read the report %q: %w", last, err)
	}
	for _, s := range p.old.conns {
		a.Connections = append(a.Connections, connection{s.from.Sub(p.stopped).Milliseconds(), s.to.Sub(p.stopped).Milliseconds()})
	}
	if failed := p.row.sum().Failed; failed > 0 {
		return nil, fmt.Errorf("%d requests failed: %s", failed, last)
	}
	return a, a.check()
}

// check compares the report with the connections of the balancer.
func (a *anatomy) check() error {
	came := 0
	for _, c := range a.Connections {
		if c.FromMS >= 0 {
			came++
		}
	}
	if came != a.Report.Accepted || len(a.Report.Sent) != 1 || a.Report.ExitCode == nil {
		return fmt.Errorf("the balancer made %d connections, the report has %+v", came, a.Report)
	}
	return nil
}
