package report

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
)

// TestSpoken: what is said of servers that were asked what they speak, the same for each at one port.
func TestSpoken(t *testing.T) {
	for _, c := range tables.Rows(`
		# the answer | is said to who named the port | and to others
		else              | warning: does not speak | does not speak
		HTTP2 Alone       | speaks HTTP/2           | speaks HTTP/2
		HTTP2 HTTP1       | warning: also speaks HTTP/1 | perhaps HTTP/1
		HTTP2             | speaks HTTP/2           | perhaps HTTP/1
		HTTP2 Alone Relay | warning: copies the bytes | warning: copies the bytes
	`) {
		var answer letgo.Answer
		for word := range strings.FieldsSeq(c[0]) {
			tables.Set(&answer, word, "")
		}
		for i, goaway := range [][]uint16{{80}, {letgo.Auto}} {
			a := letgo.New(letgo.Config{Goaway: goaway})
			for _, at := range []string{"10.0.0.2:80", "[::1]:80", "10.0.0.2:81"} {
				a.NoteAnswer(&letgo.Server{At: netip.MustParseAddrPort(at)}, answer)
			}
			asked := a.Figures().Answered
			text, isWarning := Spoken(asked[0], goaway)
			want, wantsWarning := strings.CutPrefix(c[1+i], "warning: ")
			if isWarning != wantsWarning || !strings.Contains(text, want) {
				t.Errorf("%s, %v: %q, a warning: %v", c[0], goaway, text, isWarning)
			}
			again, _ := Spoken(asked[1], goaway)
			if other, _ := Spoken(asked[2], goaway); again != text || !strings.HasPrefix(other, "port 81 ") {
				t.Errorf("%s, %v: then %q and %q", c[0], goaway, again, other)
			}
			if n := len(a.Figures().GoawayPorts); n > 2 {
				t.Errorf("%s, %v: %d ports", c[0], goaway, n)
			}
		}
	}
}
