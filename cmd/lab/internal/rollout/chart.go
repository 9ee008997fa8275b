package rollout

import (
	"fmt"
	"strings"
)

// charted is a scene of the chart.
type charted struct {
	Title      string
	Top, Stops int
	Rows       []chartRow
}

// chartRow has the lengths of a contender's bars, in pixels.
type chartRow struct {
	Name, Time        string
	Ours              bool
	Y, Failed         int
	Bar, Median, Late float64
}

// The layout of the chart, in pixels.
const (
	failedWidth = 190 // of the longest bar
	timeWidth   = 225 // of the longest time
	rowHeight   = 22
	sceneHeight = 50 // of the title, the words below and the space after a scene
	headHeight  = 56
	footHeight  = 26
)

// chart draws how many requests failed with the contenders that lameduck's defaults are compared
// with, and how long a stop took: a bar to the median, a line to the 95th percentile.
func chart(f *findings) string {
	scenes, longest := map[scene][]*part{}, 1.0
	for _, c := range contenders {
		for _, s := range allScenes {
			if row := f.part(s, c.name, ""); c.charted(s) && row.stops > 0 {
				scenes[s] = append(scenes[s], row)
				longest = max(longest, row.quantile(0.95))
			}
		}
	}
	var drawn []charted
	top := headHeight
	for _, s := range allScenes {
		parts, most := scenes[s], 1
		if len(parts) == 0 {
			continue
		}
		for _, p := range parts {
			most = max(most, p.failed)
		}
		now := charted{Title: titles[s], Top: top, Stops: parts[0].stops}
		for i, p := range parts {
			r := chartRow{Name: strings.ReplaceAll(p.contender, ", then tini", ""), Time: seconds(p.median()), Failed: p.failed,
				Ours: p.contender == defaultHold, Y: top + 44 + i*rowHeight,
				Median: max(p.median()*timeWidth/longest, 1), Late: p.quantile(0.95) * timeWidth / longest}
			if p.failed > 0 {
				r.Bar = max(failedWidth*float64(p.failed)/float64(most), 2)
			}
			now.Rows = append(now.Rows, r)
		}
		drawn = append(drawn, now)
		top += sceneHeight + rowHeight*len(parts)
	}
	return draw("chart.svg", map[string]any{"Headline": f.headline(), "Scenes": drawn, "Height": top + footHeight,
		"Shortest": 0.2 * float64(f.Scale), "Longest": longestLag.Seconds() * float64(f.Scale)}, nil)
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
