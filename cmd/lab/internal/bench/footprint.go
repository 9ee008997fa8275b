package bench

import (
	"fmt"
	"io"
	"os"
)

// footprint measures what an init costs while the command sleeps, and the size of the
// binary.
func (f figures) footprint(field []contender, e effort) {
	f.idle(field, e.copies, e.idle)
	for _, c := range field {
		f.add(size, c, float64(must(os.Stat(c.prefix[0])).Size())/1000)
	}
}

// printFootprint measures the footprint, and prints a table in Markdown for the pages.
// Resident memory includes the pages of the binary, which copies share.
func printFootprint(out io.Writer, field []contender, e effort) error {
	f := figures{}
	f.footprint(field, e)
	fmt.Fprintln(out, "| | binary | resident memory | of that, not from a file | threads | context switches a minute |")
	fmt.Fprintln(out, "| --- | ---: | ---: | ---: | ---: | ---: |")
	for _, c := range field {
		of := func(what figure) float64 { return median(f[what][c.name]) }
		fmt.Fprintf(out, "| %s | %.0f kB | %.0f kB | %.0f kB | %.0f | %.1f |\n",
			c.name, of(size), of(rss), of(anon), of(threads), of(switches))
	}
	_, err := fmt.Fprintf(out, "\nMedians of %d copies of each, with a command that sleeps, over %v.\n", e.copies, e.idle)
	return err
}
