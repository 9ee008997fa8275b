package rollout

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// printTables prints the tables of the scenes, as the pages have them.
func printTables(out io.Writer, f *findings) {
	for _, s := range allScenes {
		printTable(out, s, f)
	}
	f.printLosses(out)
}

// printTable prints a scene's table, with columns of failed requests for some of the servers
// where a failure means something else.
func printTable(out io.Writer, s scene, f *findings) {
	t := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	began := false
	for _, c := range contenders() {
		p := f.part(s, c.name, nil)
		if p.stops == 0 {
			continue
		}
		if !began {
			began = true
			head(t, s, p)
		}
		fmt.Fprintf(t, "| %s\t| %d\t| ", c.name, p.requests)
		if s == kept {
			fmt.Fprintf(t, "%d\t| %d", f.part(s, c.name, dying).failed, f.part(s, c.name, graceful).failed)
		} else {
			fmt.Fprintf(t, "%d\t| %d", p.failed, p.losing)
		}
		fmt.Fprintf(t, "\t| %s\t| %s\t| %s\t|\n", seconds(p.median()), seconds(p.quantile(0.95)), p.how())
	}
	t.Flush()
}

func head(out io.Writer, s scene, p *part) {
	failed := []string{"failed", "stops that lose any"}
	if s == kept {
		failed = []string{"failed: the server dies", "the server is graceful"}
	}
	fmt.Fprintf(out, "\n%s, %d stops each:\n\n| under\t| requests\t| %s\t| stop to exit: median\t| 95 %%\t| how\t|\n",
		titles[s], p.stops, strings.Join(failed, "\t| "))
	fmt.Fprintf(out, "| ---\t| ---:\t| ---:\t| ---:\t| ---:\t| ---:\t| ---\t|\n")
}

// printLosses prints each stop in which a hold lost requests.
func (f *findings) printLosses(out io.Writer) {
	fmt.Fprintln(out)
	for _, t := range f.Trials {
		for _, s := range t.Stops {
			if len(s.Failed) > 0 && len(s.Reports) > 0 && !t.Stalled {
				fmt.Fprintf(out, "%s, %s, a lag of %.1f s: %s; %s\n", t.Contender, t.Server, s.Lag.Seconds(),
					load.Summary(s.Failed), s.Reports[len(s.Reports)-1].Message)
			}
		}
	}
}

func seconds(ms float64) string { return fmt.Sprintf("%.1f s", ms/1000) }
