package rollout

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/template"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// render executes a template of texts. Lengths in pictures are pixels, and a class is one of style.svg.
func render(name string, data any) string {
	t := template.New(name).Funcs(template.FuncMap{"at": at, "seconds": seconds,
		"x":      func(ms any) float64 { return at(114, 0.048, ms) }, // on the axis of time in the demo's
		"halves": func(text string) []string { return strings.SplitN(text, "; ", 2) }})
	var out strings.Builder
	must.Do(template.Must(t.ParseFS(files, "texts/style.svg", "texts/"+name)).Execute(&out, data))
	return out.String()
}

// at returns the place of the nth of things that are a step apart.
func at(from any, step float64, n any) float64 {
	return math.Round(10*(number(from)+step*number(n))) / 10
}

// number returns a number of any type.
func number(n any) (value float64) {
	must.Get(fmt.Sscan(fmt.Sprint(n), &value))
	return value
}

// seconds writes a time in milliseconds.
func seconds(ms any) string { return fmt.Sprintf("%.1f s", number(ms)/1000) }

// draw draws the findings: the chart of rollouts, or the picture of the demo.
func (f findings) draw() string {
	if f[0].server.Scene == demo {
		return render("demo.svg", f)
	}
	return f.chart()
}

// table has the contenders of a scene.
type table struct {
	*scene
	Rows      []*part
	Top, Most int // of the chart: a pixel, and the most failed requests of a row
}

// tables returns the tables of the scenes, with all contenders or those in the chart.
func (f findings) tables(chart bool) (all []*table) {
	for _, s := range scenes {
		t := &table{scene: s}
		for _, c := range contenders {
			if p := f.part(s.Name, c.Name, ""); p.Stops > 0 && (!chart || slices.Contains(c.Chart, s.Name)) {
				p.Best = c.Name == s.Best
				t.Rows = append(t.Rows, p)
			}
		}
		if t.Rows != nil {
			all = append(all, t)
		}
	}
	return all
}

// chart draws how many requests failed with the contenders that lameduck's defaults are compared
// with, and how long a stop took: a bar to the median, a line to the 95th percentile.
func (f findings) chart() string {
	top, longest := 56, 1.0
	tables := f.tables(true)
	for _, t := range tables {
		t.Top, t.Most = top, 1
		top += 50 + 22*len(t.Rows)
		for _, p := range t.Rows {
			t.Most = max(t.Most, p.Failed)
			longest = max(longest, p.Late)
		}
	}
	return render("chart.svg", map[string]any{"Scenes": tables, "Height": top + 26, "Longest": longest})
}
