package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// lag is how late the balancer learns of the stop, perSecond the number of requests a
// second, and thinking the time of the server for each.
const (
	lag       = 3 * time.Second
	perSecond = 100
	thinking  = 5 * time.Millisecond
)

const intro = `Four contenders play the same stop: two replicas behind a balancer, %d
requests/s, no retries. The old replica is stopped; the balancer learns of the
stop %.0f s later, and sends until then. The server handles no signals.

%s
%s %d requests, all answered    %s some of these failed

`

const next = `Next: README.md has the lines for your image or pod spec.`

// runDemo plays the demo, or reads figures, and judges and writes the figures.
func (o *options) runDemo(ctx context.Context, out io.Writer) error {
	if o.from != "" {
		var rows []*row
		if err := readJSON(o.from, &rows); err != nil {
			return err
		}
		return o.write(rows, func() string { return drawDemo(rows) })
	}
	plays, err := o.playDemo(ctx, out)
	if err != nil {
		return err
	}
	var rows []*row
	for _, p := range plays {
		rows = append(rows, p.row)
	}
	held := plays[len(plays)-1]
	fmt.Fprintf(out, "\nNobody told lameduck about the %.0f s. Its lines on standard error:\n\n%s\n", lag.Seconds(), wrapped(held.old.stderr.String()))
	fmt.Fprint(out, table(rows))
	if err := judge(rows); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n", next)
	return o.write(rows, func() string { return drawDemo(rows) })
}

// playDemo plays the contenders and shows the rows.
func (o *options) playDemo(ctx context.Context, out io.Writer) ([]*play, error) {
	c := newScreen(out)
	fmt.Fprintf(out, intro, perSecond, lag.Seconds(), listed(contenders(o.lameduck)), c.s.good, eachColumn, c.s.bad)
	end := func(bool) {}
	plays, err := perform(func() ([]*play, error) {
		plays, rows := newPlays(o.lameduck)
		end = c.watch(rows, lag)
		return plays, playAll(ctx, plays)
	}, func(reason error) {
		end(false)
		fmt.Fprintf(out, "%v: once more\n", reason)
	})
	end(err == nil)
	return plays, err
}

// eachColumn is the number of requests in a column.
const eachColumn = int(perSecond * column / time.Second)

func newPlays(lameduck string) (plays []*play, rows []*row) {
	for _, c := range contenders(lameduck) {
		r := &row{Name: c.name, How: c.how, each: eachColumn}
		rows = append(rows, r)
		plays = append(plays, &play{contender: c, lag: lag, warm: before, row: r,
			gap:   func() time.Duration { return time.Second / perSecond },
			think: func() time.Duration { return thinking }})
	}
	return plays, rows
}

func listed(all []*contender) string {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "  %-*s%s\n", nameWidth, c.name, c.how)
	}
	return b.String()
}

// table returns the figures of all rows.
func table(rows []*row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s%10s%10s%14s\n", nameWidth, "", "requests", "failed", "gone after")
	for _, r := range rows {
		all := r.sum()
		fmt.Fprintf(&b, "%-*s%10d%10d%14s\n", nameWidth, r.Name, all.Ended, all.Failed, r.gone())
	}
	return b.String()
}

// wrapped breaks lines between words, at 79 columns.
func wrapped(text string) string {
	const width, margin = 79, "  "
	var b strings.Builder
	for line := range strings.Lines(text) {
		used := 0
		for i, word := range strings.Fields(line) {
			switch {
			case i == 0:
				b.WriteString(margin + word)
				used = len(margin) + utf8.RuneCountInString(word)
			case used+1+utf8.RuneCountInString(word) > width:
				b.WriteString("\n" + margin + margin + word)
				used = 2*len(margin) + utf8.RuneCountInString(word)
			default:
				b.WriteString(" " + word)
				used += 1 + utf8.RuneCountInString(word)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// write writes the files of the command line.
func (o *options) write(figures any, picture func() string) error {
	if o.json != "" {
		text, err := json.Marshal(figures)
		if err == nil {
			err = os.WriteFile(o.json, append(text, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("cannot write the figures: %w", err)
		}
	}
	if o.svg != "" {
		if err := os.WriteFile(o.svg, []byte(picture()), 0o644); err != nil {
			return fmt.Errorf("cannot write the picture: %w", err)
		}
	}
	return nil
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("cannot read the figures: %w", err)
	}
	return nil
}
