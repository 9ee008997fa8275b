package main

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// The script of an act. All times are from its start, but for lag and delay,
// which are from TERM.
const (
	termAt = 500 * time.Millisecond
	lag    = 3 * time.Second // how late the balancer learns of the stop
	delay  = 4 * time.Second // how long lameduck holds: the lag and a margin
	length = 4700 * time.Millisecond
	giveUp = length + 5*time.Second
	period = 10 * time.Millisecond // one request
)

// act is one stop under load. The goroutine that runs it owns all of it; the
// requests only send their results.
type act struct {
	old      *replica
	backends []string // what the balancer chooses from
	started  time.Time
	sent     int
	results  chan result
	tally    tally
	marks    []mark
	term     time.Time
	gone     time.Duration // from TERM
}

// mark is something that happened, in a column of the row.
type mark struct {
	column int
	text   string
}

// play starts the command and, beside it, the server, whose address is the
// command's last word; stops the command under load; and draws it.
func play(ctx context.Context, p *paper, server string, command ...string) (*act, error) {
	old, err := start(command...)
	if err != nil {
		return nil, err
	}
	defer old.stop()
	fresh, err := start(server, command[len(command)-1])
	if err != nil {
		return nil, err
	}
	defer fresh.stop()

	a := &act{old: old, backends: []string{old.addr, fresh.addr}, started: time.Now(), results: make(chan result)}
	err = a.run(ctx, p)
	old.stop() // what it wrote may be read only then
	p.marks(a.marks)
	p.quote(old.stderr.String())
	return a, err
}

func (a *act) run(ctx context.Context, p *paper) error {
	ctx, cancel := context.WithTimeoutCause(ctx, giveUp, errors.New("unexpected: the old replica is still there"))
	defer cancel()
	p.printf(margin)
	defer p.printf("\n")
	tick := time.NewTicker(period)
	defer tick.Stop()
	term, gone := time.After(termAt), a.old.gone
	var removal <-chan time.Time

	for gone != nil || a.tally.ended < total {
		select {
		case <-tick.C:
			a.send(ctx)
		case r := <-a.results:
			p.row(a.tally.add(r))
		case <-term:
			removal = time.After(lag)
			a.terminate()
		case <-removal:
			a.backends = a.backends[1:]
			a.mark("balancer stops sending")
		case <-gone:
			gone = nil
			if a.term.IsZero() {
				return errors.New("unexpected: the old replica ended by itself")
			}
			a.gone = time.Since(a.term)
			a.mark("process gone")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// send sends what is due. It catches up where the machine was slow, so that the
// load stays the same whatever the servers do.
func (a *act) send(ctx context.Context) {
	for due := min(total, int(time.Since(a.started)/period)); a.sent < due; a.sent++ {
		go func(number int, addr string) {
			select {
			case a.results <- result{number, request(addr)}:
			case <-ctx.Done():
			}
		}(a.sent, a.backends[a.sent%len(a.backends)])
	}
}

func (a *act) terminate() {
	a.term = time.Now()
	a.mark("TERM")
	a.old.signal(syscall.SIGTERM)
}

func (a *act) mark(text string) {
	at := min(int(time.Since(a.started)/column), columns)
	if last := len(a.marks) - 1; last >= 0 && a.marks[last].column == at {
		a.marks[last].text += ", " + text
		return
	}
	a.marks = append(a.marks, mark{at, text})
}
