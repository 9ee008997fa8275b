package rollout

import (
	"fmt"
	"strings"
)

// The layout of the chart, in pixels: names, failed requests, times.
const (
	chartWidth  = 860
	failedAt    = 290
	failedWidth = 190 // of the longest bar
	timeAt      = 560
	timeWidth   = 225 // of the longest time
	rowHeight   = 22
	sceneHeight = 50 // of the title, the words below and the space after a scene
	headHeight  = 56
	footHeight  = 26
)

// chart draws how many requests failed with the contenders that lameduck's defaults are compared
// with, and how long a stop took: a bar to the median, a line to the 95th percentile.
func chart(f *findings) string {
	p := &picture{width: chartWidth, height: headHeight + footHeight,
		title: "Failed requests and stop time with sleeps and with lameduck's defaults"}
	p.text(0, 16, "h", "%s", f.headline())
	p.text(0, 44, "q", "the server runs under")
	p.text(failedAt, 44, "q", "failed requests")
	p.text(timeAt, 44, "q", "stop to exit: median, line to 95 %%")
	longest := 1.0
	scenes := map[scene][]*part{}
	for _, s := range allScenes {
		for _, c := range contenders {
			if row := f.part(s, c.name, ""); c.charted(s) && row.stops > 0 {
				scenes[s] = append(scenes[s], row)
				longest = max(longest, row.quantile(0.95))
			}
		}
	}
	for _, s := range allScenes {
		if len(scenes[s]) > 0 {
			p.height += p.scene(s, scenes[s], float64(p.height-footHeight), timeWidth/longest)
		}
	}
	p.text(0, float64(p.height-8), "q",
		"the balancer learns of each stop %.1f to %.0f s late; times leave out WebSockets, which last",
		0.2*float64(f.Scale), longestLag.Seconds()*float64(f.Scale))
	return p.String()
}

// headline returns what the chart shows of steady traffic, or a title if the chart shows
// something else.
func (f *findings) headline() string {
	hold, sleep := f.part(steady, defaultHold, ""), f.part(steady, safeSleep, "")
	if hold.stops == 0 || sleep.stops == 0 || hold.failed+hold.killed+sleep.failed+sleep.killed > 0 {
		return "Failed requests, and the time of a stop"
	}
	return fmt.Sprintf("steady traffic: lameduck fails none of %d requests, %s a stop; a sleep longer than every lag: %s",
		hold.requests, seconds(hold.median()), seconds(sleep.median()))
}

// scene draws a title and the rows of a scene, with the row of lameduck's defaults marked, and
// returns the height. perMS is the length of a millisecond.
func (p *picture) scene(s scene, rows []*part, top, perMS float64) int {
	most := 1
	for _, row := range rows {
		most = max(most, row.failed)
	}
	p.line("rule", 0, top, chartWidth, top)
	p.text(0, top+20, "h", "%s", titles[s])
	p.text(chartWidth, top+20, "q e", "%d stops in each row", rows[0].stops)
	for i, row := range rows {
		y := top + 44 + float64(i*rowHeight)
		class := ""
		if row.contender == defaultHold {
			class = "h"
			p.rect(0, y-15, chartWidth, rowHeight-1, "shade")
		}
		p.text(8, y, class, "%s", strings.ReplaceAll(row.contender, ", then tini", ""))
		count, end := " good", float64(failedAt)
		if row.failed > 0 {
			width := max(failedWidth*float64(row.failed)/float64(most), 2)
			p.rect(failedAt, y-10, width, 12, "bad")
			count, end = " bad", failedAt+width+6
		}
		p.text(end, y, strings.TrimSpace(class+count), "%d", row.failed)
		median, late := timeAt+row.median()*perMS, timeAt+row.quantile(0.95)*perMS
		p.rect(timeAt, y-10, max(median-timeAt, 1), 12, "time")
		p.line("mark", median, y-4, late, y-4)
		p.text(late+6, y, class, "%s", seconds(row.median()))
	}
	return sceneHeight + rowHeight*len(rows)
}
