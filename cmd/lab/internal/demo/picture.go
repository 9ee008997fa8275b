package main

import (
	"fmt"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/picture"
)

// The layout of the picture of the demo, in pixels.
const (
	demoWidth   = 860
	demoTop     = 66 // of the first row
	demoPitch   = 54 // from row to row
	stripAt     = 90 // where the cells begin
	cellWidth   = 12 // of a column
	cellHeight  = 22
	secondWidth = cellWidth * float64(time.Second) / float64(column)
)

// drawDemo draws the rows of a demo. In each cell, the red part is the share of the failed
// requests.
func drawDemo(rows []*row) string {
	p := picture.New(demoWidth, demoTop+len(rows)*demoPitch+20,
		"One stop of a server, played by four contenders: requests that fail, and when the server is gone")
	p.Text(0, 14, "q", fmt.Sprintf("make demo: two replicas behind a balancer, %d requests/s, no retries; the old replica is stopped", perSecond))
	p.Text(stripX(0)-4, 42, "", "stop")
	p.Text(stripX(lag)-4, 42, "", fmt.Sprintf("the balancer learns of it, %.0f s late", lag.Seconds()))
	for _, d := range []time.Duration{0, lag} {
		p.Path("bound", stripX(d)-1, 48, stripX(d)-1, demoTop)
	}
	for i, r := range rows {
		drawRow(p, r, float64(demoTop+i*demoPitch))
	}
	bottom := float64(demoTop + len(rows)*demoPitch + 8)
	for s := 0; s <= 10; s += 2 {
		p.TextMiddle(stripX(time.Duration(s)*time.Second), bottom, "q s", fmt.Sprintf("%d s", s))
	}
	p.TextEnd(demoWidth, bottom, "q s", fmt.Sprintf("a cell is %d requests", eachColumn))
	return p.String()
}

// stripX returns the place of a time after the stop.
func stripX(d time.Duration) float64 { return stripAt + (before+d).Seconds()*secondWidth }

func drawRow(p *picture.Picture, r *row, y float64) {
	p.Text(0, y+15, "h", r.Name)
	for i, c := range r.Columns {
		x := stripAt + float64(i*cellWidth)
		bad := cellHeight * float64(c.Failed) / float64(c.Ended)
		p.Rect(x, y, cellWidth-2, cellHeight-bad, "ok")
		p.Rect(x, y+cellHeight-bad, cellWidth-2, bad, "bad")
	}
	for _, d := range []time.Duration{0, lag} {
		p.Path("bound", stripX(d)-1, y-5, stripX(d)-1, y+cellHeight+3)
	}
	gone := stripX(time.Duration(r.GoneMS*float64(time.Millisecond))) - 1
	p.Path("mark", gone, y-5, gone, y+cellHeight+5)
	p.Text(stripAt, y+cellHeight+14, "q s", r.How)
	x := stripAt + float64(len(r.Columns)*cellWidth) + 8
	failed, class := r.sum().Failed, "good"
	if failed > 0 {
		class = "bad"
	}
	text := fmt.Sprintf("%d failed", failed)
	p.Text(x, y+15, "h "+class, text)
	p.Text(x+charWidth*float64(len(text)+1), y+15, "", "gone after "+r.gone())
}

// charWidth is the width of a character, a little more than in most fonts.
const charWidth = 7.3
