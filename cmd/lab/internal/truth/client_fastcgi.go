package truth

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Types of FastCGI's records, from its specification, section 8.
const (
	fcgiBegin  = 1
	fcgiEnd    = 3
	fcgiParams = 4
	fcgiStdin  = 5
)

// fastcgi makes a counted request in nginx's way, on a new connection, closed by the
// server.
func (c *client) fastcgi(query string) { c.t.real(func() error { return c.askFastCGI(query) }) }

func (c *client) askFastCGI(query string) error {
	conn := c.dial()
	if conn.err != nil {
		return conn.err
	}
	defer conn.stop()
	if _, err := conn.Write(fcgiRequest(0, c.t.dir, query)); err != nil {
		return err
	}
	return readFastCGI(conn.in)
}

// fcgiKeepConn asks the server to keep the connection.
const fcgiKeepConn = 1

// fcgiRequest returns a request with the flags for the script in a folder.
func fcgiRequest(flags byte, dir, query string) []byte {
	const responder = 1
	text := fcgiRecord(fcgiBegin, []byte{0, responder, flags, 0, 0, 0, 0, 0})
	text = append(text, fcgiRecord(fcgiParams, fcgiPairs("SCRIPT_FILENAME", dir+"/app.php", "REQUEST_METHOD", "GET", "QUERY_STRING", query))...)
	text = append(text, fcgiRecord(fcgiParams, nil)...)
	return append(text, fcgiRecord(fcgiStdin, nil)...)
}

func fcgiRecord(kind byte, content []byte) []byte {
	header := []byte{1, kind, 0, 1, 0, 0, 0, 0} // version 1, request 1
	binary.BigEndian.PutUint16(header[4:], uint16(len(content)))
	return append(header, content...)
}

// fcgiPairs writes names and values, each shorter than 128 bytes.
func fcgiPairs(words ...string) []byte {
	var text []byte
	for i := 0; i < len(words); i += 2 {
		text = append(text, byte(len(words[i])), byte(len(words[i+1])))
		text = append(text, words[i]+words[i+1]...)
	}
	return text
}

// readFastCGI reads records to the end of the answer.
func readFastCGI(in io.Reader) error {
	for {
		var header [8]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return fmt.Errorf("cannot read the answer: %w", err)
		}
		size := int64(binary.BigEndian.Uint16(header[4:])) + int64(header[6]) // content and padding
		if _, err := io.CopyN(io.Discard, in, size); err != nil {
			return fmt.Errorf("cannot read the answer: %w", err)
		}
		if header[1] == fcgiEnd {
			return nil
		}
	}
}
