package truth

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strconv"
)

// stream is a connection over TCP or TLS.
type stream struct {
	net.Conn
	in *bufio.Reader
}

func (c *client) dialStream() (link, error) {
	conn, err := c.dial(context.Background(), "tcp", c.server())
	if err != nil {
		return nil, err
	}
	if c.p.protocol != "tcp" && c.p.protocol != "mptcp" {
		config := c.tls()
		if c.p.protocol == "tls-h2" {
			config.NextProtos = []string{"h2"}
		}
		secure := tls.Client(conn, config)
		if err := secure.Handshake(); err != nil {
			return nil, err
		}
		conn = secure
	}
	return &stream{conn, bufio.NewReader(conn)}, nil
}

func (c *stream) take(verb, arg string) (known bool, err error) {
	switch verb {
	case "send":
		_, err = io.WriteString(c, unquote(arg))
	case "fill":
		_, err = c.Write(bytes.Repeat([]byte("x"), number(arg)))
	case "expect":
		err = c.expect(unquote(arg))
	case "answer":
		err = c.answer()
	case "query":
		_, err = c.Write(postgresQuery(arg))
	case "fastcgi":
		_, err = c.Write(fastcgiRequest(0, arg))
	case "fastcgi-kept":
		_, err = c.Write(fastcgiRequest(1, arg))
	case "fin":
		err = c.Conn.(interface{ CloseWrite() error }).CloseWrite()
	case "reset":
		c.Conn.(*net.TCPConn).SetLinger(0)
		err = c.Close()
	case "close":
		err = c.Close()
	default:
		return false, nil
	}
	return true, err
}

// unquote replaces Go's escapes in a text.
func unquote(text string) string { return must(strconv.Unquote(`"` + text + `"`)) }

// expect reads to a text.
func (c *stream) expect(text string) error {
	window := make([]byte, len(text))
	for string(window) != text {
		b, err := c.in.ReadByte()
		if err != nil {
			return err
		}
		window = append(window[1:], b)
	}
	return nil
}

// answer reads an answer of HTTP/1.1.
func (c *stream) answer() error {
	answer, err := http.ReadResponse(c.in, nil)
	return finish(answer, err)
}

// postgresQuery returns a message of PostgreSQL's frontend/backend protocol.
func postgresQuery(text string) []byte {
	message := binary.BigEndian.AppendUint32([]byte("Q"), uint32(len(text)+5))
	return append(append(message, text...), 0)
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
