package letgo

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestIsHTTP2: the beginning of a SETTINGS frame is the answer of HTTP/2. Fewer bytes may be certain, too.
func TestIsHTTP2(t *testing.T) {
	for _, c := range tables.Rows(`
		# the answer | HTTP/2
		""                                                        | not yet
		"\x00\x00\x00\x04\x00\x00\x00\x00"                        | not yet
		"\x00\x00\x00\x04\x00\x00\x00\x00\x00"                    | yes
		"\x00\x00\x18\x04\x00\x00\x00\x00\x00\x00\x03"            | yes
		"\x00\x01\x02\x04\x00\x00\x00\x00\x00"                    | yes
		"\x00\x00\x07\x04\x00\x00\x00\x00\x00"                    | no
		"\x01\x00\x06\x04\x00\x00\x00\x00\x00"                    | no
		"\x00\x00\x00\x04\x01\x00\x00\x00\x00"                    | no
		"\x00\x00\x06\x04\x00\x00\x00\x00\x01"                    | no
		"\x00\x00\x08\x07\x00\x00\x00\x00\x00"                    | no
		"H"                                                       | no
		"HTTP/1.1 505 HTTP Version Not Supported\r\n"             | no
		"-ERR unknown command 'PRI'\r\n"                          | no
		"ERROR\r\n"                                               | no
		"\x15\x03\x01\x00\x02\x02\x16"                            | no
		"E\x00\x00\x00"                                           | no
	`) {
		answer, err := strconv.Unquote(c[0])
		if err != nil {
			t.Fatal(err)
		}
		is, isCertain := IsHTTP2(answer)
		words := map[[2]bool]string{{true, true}: "yes", {false, true}: "no", {false, false}: "not yet"}
		if got := words[[2]bool{is, isCertain}]; got != c[1] {
			t.Errorf("%q: %s, want %s", answer, got, c[1])
		}
	}
	for answer, want := range map[string][2]bool{
		"": {false, false}, "HTTP": {false, false}, "HTTP/1.": {true, true}, "HTTP/1.1 200 OK": {true, true},
		"HTTP/2": {false, true}, "\x00\x00": {false, true}, "HTTQ": {false, true},
	} {
		if is, isCertain := IsHTTP1(answer); is != want[0] || isCertain != want[1] {
			t.Errorf("HTTP/1: %q: %v, %v", answer, is, isCertain)
		}
	}
}

// TestPreface: the preface of a client and a SETTINGS frame, with sixteen settings.
func TestPreface(t *testing.T) {
	settings, isPreface := strings.CutPrefix(Preface, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if is, _ := IsHTTP2(settings); !isPreface || !is || len(settings) != 9+int(settings[2]) || settings[2] != 16*6 {
		t.Errorf("%q", Preface)
	}
}

// TestWay: how the clients of a server are asked, by its answer, the flags, and whether the port is named.
func TestWay(t *testing.T) {
	ways := map[way]string{unknown: "not asked", never: "never", closing: "closed", notice: "GOAWAY"}
	for _, c := range tables.Rows(`
		# the answer | named | auto | --close-idle alone
		not yet           | not asked | not asked | not asked
		else              | never  | never  | closed
		HTTP2             | GOAWAY | never  | closed
		HTTP2 HTTP1       | GOAWAY | never  | closed
		HTTP2 Alone       | GOAWAY | GOAWAY | GOAWAY
		HTTP2 Relay       | never  | never  | never
		HTTP2 Alone Relay | never  | never  | never
	`) {
		is := func(word string) bool { return strings.Contains(c[0], word) }
		answer := Answer{HTTP2: is("HTTP2"), HTTP1: is("HTTP1"), Alone: is("Alone"), Relay: is("Relay")}
		for i, cfg := range []Config{
			{Goaway: []uint16{80}}, {Goaway: []uint16{Auto}}, {Goaway: []uint16{Auto}, CloseIdle: true},
		} {
			a := New(cfg)
			y := a.addServer(&ledger.Conn{Socket: tcp.Socket{Local: netip.MustParseAddrPort("10.0.0.2:80")}})
			if unknown := a.TakeUnknown(); len(unknown) != 1 || unknown[0] != y || len(a.TakeUnknown()) > 0 {
				t.Errorf("%+v: not asked once", cfg)
			}
			if !is("not yet") {
				a.NoteAnswer(y, answer)
			}
			if got := ways[y.way]; got != c[i+1] {
				t.Errorf("%s, %+v: %s, want %s", c[0], cfg, got, c[i+1])
			}
			if isMoved := y.Moves(); isMoved != (c[i+1] == "GOAWAY") || len(a.Figures().Answered) != map[bool]int{true: 0, false: 1}[is("not yet")] {
				t.Errorf("%s, %+v: moved: %v, answers: %v", c[0], cfg, isMoved, a.Figures().Answered)
			}
		}
	}
}
