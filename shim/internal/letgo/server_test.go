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

// TestAnswers: the beginning of a SETTINGS frame is the answer of HTTP/2. Fewer bytes may be certain, too.
func TestAnswers(t *testing.T) {
	words := map[[2]bool]string{{true, true}: "yes", {false, true}: "no", {false, false}: "not yet"}
	for _, c := range tables.Rows(`
		# the answer | HTTP/2 | HTTP/1
		""                                                        | not yet | not yet
		"\x00\x00"                                                | not yet | no
		"\x00\x00\x00\x04\x00\x00\x00\x00"                        | not yet | no
		"\x00\x00\x00\x04\x00\x00\x00\x00\x00"                    | yes | no
		"\x00\x00\x18\x04\x00\x00\x00\x00\x00\x00\x03"            | yes | no
		"\x00\x01\x02\x04\x00\x00\x00\x00\x00"                    | yes | no
		"\x00\x00\x07\x04\x00\x00\x00\x00\x00"                    | no | no
		"\x01\x00\x06\x04\x00\x00\x00\x00\x00"                    | no | no
		"\x00\x00\x00\x04\x01\x00\x00\x00\x00"                    | no | no
		"\x00\x00\x06\x04\x00\x00\x00\x00\x01"                    | no | no
		"\x00\x00\x08\x07\x00\x00\x00\x00\x00"                    | no | no
		"H"                                                       | no | not yet
		"HTTP"                                                    | no | not yet
		"HTTP/1."                                                 | no | yes
		"HTTP/1.1 505 HTTP Version Not Supported\r\n"             | no | yes
		"HTTP/2"                                                  | no | no
		"HTTQ"                                                    | no | no
		"-ERR unknown command 'PRI'\r\n"                          | no | no
		"\x15\x03\x01\x00\x02\x02\x16"                            | no | no
	`) {
		answer, err := strconv.Unquote(c[0])
		if err != nil {
			t.Fatal(err)
		}
		for i, asks := range []func(string) (bool, bool){IsHTTP2, IsHTTP1} {
			is, isCertain := asks(answer)
			if got := words[[2]bool{is, isCertain}]; got != c[1+i] {
				t.Errorf("%q: %s, want %s", answer, got, c[1+i])
			}
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
	ways := map[way]string{never: "never", closing: "closed", notice: "GOAWAY"}
	for _, c := range tables.Rows(`
		# the answer | named | auto | --close-idle alone
		not yet           | never  | never  | never
		else              | never  | never  | closed
		HTTP2             | GOAWAY | never  | closed
		HTTP2 HTTP1       | GOAWAY | never  | closed
		HTTP2 Alone       | GOAWAY | GOAWAY | GOAWAY
		HTTP2 Relay       | never  | never  | never
		HTTP2 Alone Relay | never  | never  | never
	`) {
		var answer Answer
		for word := range strings.FieldsSeq(c[0]) {
			tables.Set(&answer, word, "")
		}
		for i, cfg := range []Config{
			{Goaway: []uint16{80}}, {Goaway: []uint16{Auto}}, {Goaway: []uint16{Auto}, CloseIdle: true},
		} {
			a := New(cfg)
			y := a.addServer(&ledger.Conn{Socket: tcp.Socket{Local: netip.MustParseAddrPort("10.0.0.2:80")}})
			if unknown := a.TakeUnknown(); len(unknown) != 1 || unknown[0] != y || len(a.TakeUnknown()) > 0 {
				t.Errorf("%+v: not asked once", cfg)
			}
			if c[0] != "not yet" {
				a.NoteAnswer(y, answer)
			}
			if got := ways[y.way]; got != c[i+1] {
				t.Errorf("%s, %+v: %s, want %s", c[0], cfg, got, c[i+1])
			}
		}
	}
}
