package systems

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// printTable prints a line for each row, and below the table why rows are wrong.
func printTable(out io.Writer, rows []*row) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join([]string{"kernel", "variant", "HUP", "orphans", "hold ended", "observer", "scope", "requests", "lost", "in flight", "exit", "time", "verdict"}, "\t"))
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r.cells(), "\t"))
	}
	t.Flush()
	for _, r := range rows {
		for _, text := range r.wrong {
			fmt.Fprintf(out, "%s, %s: %s\n", r.kernel.version, r.variant.name, text)
		}
	}
}

func (r *row) cells() []string {
	cells := []string{r.kernel.version, r.variant.name}
	if r.skipped != "" {
		return append(cells, "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "skipped: "+r.skipped)
	}
	rep := &r.outcome.report
	served := []string{"-", "-", "-", "-", "-", "-", "-", "-"}
	if r.variant.command == "serve" {
		served = []string{fmt.Sprint(r.status.HUPs), fmt.Sprint(r.status.Orphans), dash(rep.Ended), dash(rep.Observer), dash(rep.Scope),
			fmt.Sprint(r.sent), fmt.Sprint(r.lost), dash(r.slow)}
	}
	cells = append(cells, served...)
	return append(cells, r.exit(), r.took.Round(time.Second).String(), r.verdict())
}

func (r *row) exit() string {
	if !r.outcome.ended {
		return "-"
	}
	return fmt.Sprint(r.outcome.exit)
}

func (r *row) verdict() string {
	if len(r.wrong) > 0 {
		return "WRONG"
	}
	return "ok"
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
