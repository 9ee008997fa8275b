package rollout

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The chart's columns, in pixels: names, failed requests, times.
const (
	chartWidth = 860
	nameWidth  = 365
	failedAt   = nameWidth
	barWidth   = 150
	timeAt     = failedAt + barWidth + 80
	timeWidth  = chartWidth - timeAt - 60
	rowHeight  = 22
	headHeight = 44
)

// style has a light and a dark scheme.
const style = `<style>
text{font:12px ui-monospace,monospace;fill:#24292f}
.h{font-weight:bold}.q{fill:#57606a}
.bad{fill:#cf222e}.good{fill:#1a7f37}.t{stroke:#0969da;fill:#0969da}.r{stroke:#d0d7de}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.q{fill:#8b949e}
.bad{fill:#f85149}.good{fill:#3fb950}.t{stroke:#58a6ff;fill:#58a6ff}.r{stroke:#30363d}}
</style>
`

// chart draws how many requests failed with each contender, and how long a stop
// took: a dot at the median, a line to the 95th percentile.
func chart(f *findings) string {
	rows := 0
	for _, s := range f.Scenes {
		rows += len(s.Contenders) + 2
	}
	height := headHeight + rowHeight*rows + 22
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", chartWidth, height, chartWidth, height)
	fmt.Fprintf(&b, "<title>%s</title>\n%s", "Failed requests and stop time of each contender", style)
	mostFailed, longest := extremes(f)
	write(&b, 0, 16, "h", "what the server runs under")
	write(&b, failedAt, 16, "h", "failed requests")
	write(&b, timeAt, 16, "h", "stop to exit: median, 95 %")
	fmt.Fprintf(&b, `<path class="r" d="M0 26H%d"/>`+"\n", chartWidth)
	y := headHeight
	for _, s := range f.Scenes {
		y = drawScene(&b, s, y, float64(mostFailed), longest)
	}
	write(&b, 0, height-26, "q", fmt.Sprintf("the balancer learns of each stop %.1f to %.0f s late; scale %g, seed %d",
		0.2*float64(f.Scale), 10*float64(f.Scale), float64(f.Scale), f.Seed))
	write(&b, 0, height-8, "q", "bars are logarithmic; times are without servers whose connections last")
	b.WriteString("</svg>\n")
	return b.String()
}

// extremes returns what the longest bar and the longest line stand for.
func extremes(f *findings) (mostFailed int, longest float64) {
	mostFailed, longest = 1, 1
	for _, s := range f.Scenes {
		for _, c := range s.Contenders {
			mostFailed, longest = max(mostFailed, c.All.Failed), max(longest, c.All.P95MS)
		}
	}
	return mostFailed, longest
}

// drawScene draws a title and the rows of a scene, and returns where the next scene begins.
func drawScene(b *strings.Builder, s *sceneFigures, y int, mostFailed, longest float64) int {
	title := fmt.Sprintf("%s: %d servers, %d stops in each row", s.Scene.title(), len(s.Servers), s.Contenders[0].All.Stops)
	write(b, 0, y, "h", title)
	for i, c := range s.Contenders {
		drawRow(b, c, y+(i+1)*rowHeight, mostFailed, longest)
	}
	return y + (len(s.Contenders)+2)*rowHeight
}

func drawRow(b *strings.Builder, c *figures, y int, mostFailed, longest float64) {
	write(b, 0, y, "", c.Name)
	failed, class := float64(c.All.Failed), "good"
	if failed > 0 {
		class = "bad"
		width := max(2, barWidth*math.Log1p(failed)/math.Log1p(mostFailed))
		fmt.Fprintf(b, `<rect class="bad" x="%d" y="%d" width="%.0f" height="12"/>`, failedAt, y-10, width)
		failed = width + 6
	}
	fmt.Fprintf(b, `<text class="%s" x="%.0f" y="%d">%d</text>`, class, failedAt+failed, y, c.All.Failed)
	x := func(ms float64) float64 { return timeAt + timeWidth*ms/longest }
	fmt.Fprintf(b, `<path class="t" d="M%.0f %dH%.0f"/><circle class="t" cx="%.0f" cy="%d" r="4"/>`,
		x(c.All.MedianMS), y-4, x(c.All.P95MS), x(c.All.MedianMS), y-4)
	write(b, int(x(c.All.P95MS))+10, y, "q", seconds(c.All.MedianMS))
}

func write(b *strings.Builder, x, y int, class, text string) {
	fmt.Fprintf(b, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(text))
}
