package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestString: the document is well-formed with any text, and has both schemes.
func TestString(t *testing.T) {
	p := New(100, 50, `a "title" <of> & more`)
	p.Text(1, 2, "h", "<5 & 6>")
	p.TextEnd(1.25, 2, "", "end")
	p.TextMiddle(1, 2, "", "middle")
	p.Rect(0, 0, 10, 5.04, "bad")
	p.Rect(0, 0, 0, 5, "never")
	p.Path("mark", 1, 2, 3.5, 4)
	text := p.String()
	for in := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	for _, want := range []string{"prefers-color-scheme:dark", `viewBox="0 0 100 50"`, ">&lt;5 &amp; 6&gt;<",
		`text-anchor="end" x="1.2"`, `text-anchor="middle"`, `height="5"`, `d="M1 2L3.5 4"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "never") {
		t.Error("an empty rectangle is drawn")
	}
}
