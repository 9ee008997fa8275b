package rollout

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/template"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// draw executes the template of a picture, with a time axis from a pixel on. Lengths are pixels, and
// a class is one of pictures/style.svg.
func draw(name string, data any, from, perSecond float64) string {
	at := func(from any, step float64, n any) float64 { return math.Round(10*(number(from)+step*number(n))) / 10 }
	t := template.New(name).Funcs(template.FuncMap{"at": at, "seconds": seconds,
		"x": func(ms any) float64 { return at(from, perSecond/1000, ms) }})
	var out strings.Builder
	must.Do(template.Must(t.ParseFS(files, "pictures/style.svg", "pictures/"+name)).Execute(&out, data))
	return out.String()
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
	if f[0].server.scene == demo {
		return draw("demo.svg", f, 114, 48)
	}
	return f.chart()
}

// charted is a scene of the chart.
type charted struct {
	Title     string
	Top, Most int // a pixel, and the most failed requests of a row
	Rows      []*part
}

// best returns the contender that the chart of a scene has as lameduck's.
func best(s scene) string {
	if s == kept || s == calls {
		return "lameduck --until=quiet --close-idle"
	}
	return "lameduck --until=quiet"
}

// chart draws how many requests failed with the contenders that lameduck's defaults are compared
// with, and how long a stop took: a bar to the median, a line to the 95th percentile.
func (f findings) chart() string {
	var scenes []charted
	top, longest := 56, 1.0
	for _, s := range rollouts {
		now := charted{titles[s], top, 1, nil}
		for _, c := range contenders {
			if p := f.part(s, c.name, ""); slices.Contains(c.chart, string(s)) && p.Stops > 0 {
				p.Best = c.name == best(s)
				now.Rows = append(now.Rows, p)
				now.Most = max(now.Most, p.Failed)
				longest = max(longest, p.Late)
			}
		}
		if now.Rows != nil {
			scenes = append(scenes, now)
			top += 50 + 22*len(now.Rows)
		}
	}
	return draw("chart.svg", map[string]any{"Scenes": scenes, "Height": top + 26, "Longest": longest}, 0, 0)
}
