package rollout

import (
	"embed"
	"fmt"
	"html"
	"regexp"
	"strings"
	"text/template"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// pictures are the templates of the pages' SVG drawings. Their lengths are pixels; a class is one of
// pictures/style.svg. The functions of all templates are those of shapes.
//
//go:embed pictures
var pictures embed.FS

// emptyLines remain of the actions of a template.
var emptyLines = regexp.MustCompile(`\n\s*\n+`)

// draw executes a template, which may use further functions.
func draw(name string, data any, functions template.FuncMap) string {
	t := template.New(name).Funcs(shapes).Funcs(functions)
	var out strings.Builder
	must.Do(template.Must(t.ParseFS(pictures, "pictures/style.svg", "pictures/"+name)).Execute(&out, data))
	return emptyLines.ReplaceAllString(out.String(), "\n")
}

var shapes = template.FuncMap{"text": text, "rect": rect, "line": line, "seconds": seconds,
	"add": func(a, b any) float64 { return num(a) + num(b) },
	"sub": func(a, b any) float64 { return num(a) - num(b) },
	"mul": func(a, b any) float64 { return num(a) * num(b) },
	"div": func(a, b any) float64 { return num(a) / num(b) },
}

// num returns a number of any type.
func num(n any) (value float64) {
	must.Get(fmt.Sscan(fmt.Sprint(n), &value))
	return value
}

// text writes text that starts at x.
func text(x, y any, class, format string, args ...any) string {
	return fmt.Sprintf("<text class=%q x=\"%.4g\" y=\"%.4g\">%s</text>\n",
		strings.TrimSpace(class), num(x), num(y), html.EscapeString(fmt.Sprintf(format, args...)))
}

// rect draws a rectangle, unless the rectangle is empty.
func rect(x, y, width, height any, class string) string {
	if num(width) <= 0 || num(height) <= 0 {
		return ""
	}
	return fmt.Sprintf("<rect class=%q x=\"%.4g\" y=\"%.4g\" width=\"%.4g\" height=\"%.4g\"/>\n",
		class, num(x), num(y), num(width), num(height))
}

// line draws a line from one point to another.
func line(class string, x, y, toX, toY any) string {
	return fmt.Sprintf("<path class=%q d=\"M%.4g %.4gL%.4g %.4g\"/>\n", class, num(x), num(y), num(toX), num(toY))
}

// seconds writes a time in milliseconds.
func seconds(ms any) string { return fmt.Sprintf("%.1f s", num(ms)/1000) }
