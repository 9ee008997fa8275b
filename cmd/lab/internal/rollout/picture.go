package rollout

import (
	"fmt"
	"html"
	"strings"
)

// style has a light and a dark scheme, without fonts or scripts from elsewhere. The classes are
// those of the arguments of picture's methods: text of class m is around its place, and ends
// there with class e.
const style = `<style>
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#24292f}
.h{font-weight:bold}.q{fill:#57606a}.s{font-size:11px}.m{text-anchor:middle}.e{text-anchor:end}
.bad{fill:#cf222e}.good{fill:#1a7f37}.time{fill:#0969da}
.ok{fill:#4ac26b}.shade{fill:#0969da;fill-opacity:.1}.mute{fill:#c4cad1}
.rule{stroke:#d0d7de;fill:none}.mark{stroke:#24292f;fill:none}
.kill{stroke:#cf222e;fill:none;stroke-dasharray:4 3}.bound{stroke:#57606a;fill:none;stroke-dasharray:4 3}
.span{stroke:#57606a;fill:none}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.q{fill:#8b949e}
.bad{fill:#f85149}.good{fill:#3fb950}.time{fill:#58a6ff}
.ok{fill:#2ea043}.shade{fill:#58a6ff;fill-opacity:.18}.mute{fill:#484f58}
.rule{stroke:#30363d}.mark{stroke:#e6edf3}
.kill{stroke:#f85149}.bound{stroke:#8b949e}.span{stroke:#8b949e}}
</style>
`

// picture is an SVG drawing of the pages. Lengths are pixels. A class is a class of the style, or "".
type picture struct {
	width, height int
	title         string // for readers who cannot see the drawing
	body          strings.Builder
}

// text writes text that starts at x.
func (p *picture) text(x, y float64, class, format string, args ...any) {
	fmt.Fprintf(&p.body, "<text class=%q x=\"%.4g\" y=\"%.4g\">%s</text>\n",
		class, x, y, html.EscapeString(fmt.Sprintf(format, args...)))
}

// rect draws a rectangle, unless the rectangle is empty.
func (p *picture) rect(x, y, width, height float64, class string) {
	if width > 0 && height > 0 {
		fmt.Fprintf(&p.body, "<rect class=%q x=\"%.4g\" y=\"%.4g\" width=\"%.4g\" height=\"%.4g\"/>\n",
			class, x, y, width, height)
	}
}

// line draws a line from one point to another.
func (p *picture) line(class string, x, y, toX, toY float64) {
	fmt.Fprintf(&p.body, "<path class=%q d=\"M%.4g %.4gL%.4g %.4g\"/>\n", class, x, y, toX, toY)
}

// String returns the drawing as a document.
func (p *picture) String() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">
<title>%s</title>
%s%s</svg>
`, p.width, p.height, p.width, p.height, html.EscapeString(p.title), style, &p.body)
}
