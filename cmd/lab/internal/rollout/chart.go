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

// chartRows are the contenders of the chart: the sleeps that a hold with lameduck's
// defaults is compared with. All contenders are in the tables.
var chartRows = map[scene][]string{
	steady: {"tini", "sleep 5, then tini", "sleep 10, then tini", safeSleep, defaultHold},
	kept:   {"tini", "sleep 5, then tini", keptSleep, settledHold, defaultHold},
	sparse: {"tini", "sleep 5, then tini", "sleep 10, then tini", defaultHold, floored},
}

// chartRow is a contender of the chart.
type chartRow struct {
	name string
	*part
}

// chart draws how many requests failed with each contender, and how long a stop took: a
// bar to the median, a line to the 95th percentile.
func chart(f *findings) string {
	height := headHeight + footHeight
	longest := 1.0
	scenes := map[scene][]chartRow{}
	for s, names := range chartRows {
		for _, name := range names {
			if p := f.part(s, name, nil); p.stops > 0 {
				scenes[s] = append(scenes[s], chartRow{name, p})
				longest = max(longest, p.quantile(0.95))
			}
		}
		if len(scenes[s]) > 0 {
			height += sceneHeight + rowHeight*len(scenes[s])
		}
	}
	p := newPicture(chartWidth, height, "Failed requests and stop time with sleeps and with lameduck's defaults")
	p.text(0, 16, "h", f.headline())
	p.text(0, 44, "q", "the server runs under")
	p.text(failedAt, 44, "q", "failed requests")
	p.text(timeAt, 44, "q", "stop to exit: median, line to 95 %")
	y := float64(headHeight)
	for _, s := range allScenes {
		if len(scenes[s]) > 0 {
			y = drawScene(p, s, scenes[s], y, longest)
		}
	}
	p.text(0, float64(height-8), "q", fmt.Sprintf(
		"the balancer learns of each stop %.1f to %.0f s late; times leave out WebSockets, which last",
		0.2*float64(f.Scale), longestLag.Seconds()*float64(f.Scale)))
	return p.String()
}

// headline returns what the chart shows of steady traffic, or a title if the chart shows
// something else.
func (f *findings) headline() string {
	hold, sleep := f.part(steady, defaultHold, nil), f.part(steady, safeSleep, nil)
	if !hold.losesNone() || !sleep.losesNone() {
		return "Failed requests, and the time of a stop"
	}
	return fmt.Sprintf("steady traffic: lameduck fails none of %d requests, %s a stop; a sleep longer than every lag: %s",
		hold.requests, seconds(hold.median()), seconds(sleep.median()))
}

// drawScene draws a title and the rows of a scene, and returns where the next scene begins.
func drawScene(p *picture, s scene, rows []chartRow, y, longest float64) float64 {
	most := 1
	for _, c := range rows {
		most = max(most, c.failed)
	}
	p.path("rule", 0, y, chartWidth, y)
	p.text(0, y+20, "h", titles[s])
	p.textEnd(chartWidth, y+20, "q", fmt.Sprintf("%d stops in each row", rows[0].stops))
	y += 44
	for _, c := range rows {
		drawRow(p, c, y, float64(most), longest)
		y += rowHeight
	}
	return y + sceneHeight - 44
}

// drawRow draws a contender. The row of lameduck's defaults is marked.
func drawRow(p *picture, c chartRow, y, mostFailed, longest float64) {
	name, class := strings.ReplaceAll(c.name, ", then tini", ""), ""
	if c.name == defaultHold {
		class = "h"
		p.rect(0, y-15, chartWidth, rowHeight-1, "shade")
	}
	p.text(8, y, class, name)
	width := failedWidth * float64(c.failed) / mostFailed
	count := "bad"
	if c.failed == 0 {
		count, width = "good", -6
	} else {
		width = max(width, 2)
	}
	p.rect(failedAt, y-10, width, 12, "bad")
	p.text(failedAt+width+6, y, strings.TrimSpace(class+" "+count), fmt.Sprint(c.failed))
	scale := timeWidth / longest
	median, late := timeAt+c.median()*scale, timeAt+c.quantile(0.95)*scale
	p.rect(timeAt, y-10, max(median-timeAt, 1), 12, "time")
	p.path("mark", median, y-4, late, y-4)
	p.text(late+6, y, class, seconds(c.median()))
}
