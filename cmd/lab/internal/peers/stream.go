package peers

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// Stream is a connection over TCP or a protocol on top.
type Stream struct{ *load.Conn }

// Take takes a step.
func (c *Stream) Take(step plays.Step) (err error) {
	arg := step.Arg
	switch step.Verb {
	case "send":
		_, err = io.WriteString(c, unquote(arg))
	case "fill":
		_, err = c.Write(bytes.Repeat([]byte("x"), plays.Number(arg)))
	case "expect":
		err = c.expect(unquote(arg))
	case "answer":
		err = c.Answer()
	case "query":
		// A message of PostgreSQL's frontend/backend protocol.
		head := binary.BigEndian.AppendUint32([]byte("Q"), uint32(len(arg)+5))
		_, err = fmt.Fprintf(c, "%s%s\x00", head, arg)
	case "fastcgi":
		_, err = c.Write(fastcgiRequest(0, arg))
	case "fastcgi-kept":
		_, err = c.Write(fastcgiRequest(1, arg))
	case "fin":
		err = c.Conn.Conn.(interface{ CloseWrite() error }).CloseWrite()
	case "close":
		err = c.Close()
	default:
		err = unknown(step)
	}
	return err
}

// unquote replaces Go's escapes in a text.
func unquote(text string) string { return must.Get(strconv.Unquote(`"` + text + `"`)) }

// expect reads to a text.
func (c *Stream) expect(text string) error {
	window := make([]byte, len(text))
	for string(window) != text {
		b, err := c.In.ReadByte()
		if err != nil {
			return err
		}
		window = append(window[1:], b)
	}
	return nil
}

// fastcgiRequest returns a request for app.php in the working directory. The flag 1 keeps
// the connection. See the specification of FastCGI, sections 3.3 and 5.
func fastcgiRequest(flag byte, query string) []byte {
	const begin, params, stdin = 1, 4, 5
	record := func(kind byte, content string) []byte {
		head := []byte{1, kind, 0, 1, 0, byte(len(content)), 0, 0} // version 1, request 1
		return append(head, content...)
	}
	pair := func(name, value string) string {
		return string([]byte{byte(len(name)), byte(len(value))}) + name + value
	}
	pairs := pair("SCRIPT_FILENAME", "/proc/self/cwd/app.php") + pair("REQUEST_METHOD", "GET")
	pairs += pair("QUERY_STRING", query)
	return bytes.Join([][]byte{
		record(begin, string([]byte{0, 1, flag, 0, 0, 0, 0, 0})), // as a responder
		record(params, pairs),
		record(params, ""),
		record(stdin, ""),
	}, nil)
}
