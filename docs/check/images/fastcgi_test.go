package images

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	client "github.com/lameduck-init/lameduck/cmd/lab/load"
)

// The types and values in FastCGI's records that a web server needs: FastCGI
// Specification, section 8.
const (
	beginRequest = 1
	endRequest   = 3
	params       = 4
	stdin        = 5
	stdout       = 6

	responder = 1
	keepConn  = 1
)

// speakFastCGI is a talk in the manner of a web server before PHP-FPM.
func speakFastCGI(conn *client.Conn, slow, keep bool) error {
	script, flags := "/", byte(0)
	if slow {
		script = "/slow"
	}
	if keep {
		flags = keepConn
	}
	var text []byte
	text = record(text, beginRequest, []byte{0, responder, flags, 0, 0, 0, 0, 0})
	text = record(text, params, pairs("REQUEST_METHOD", "GET", "SCRIPT_NAME", script, "SCRIPT_FILENAME", "/var/www/html/index.php"))
	text = record(text, params, nil)
	text = record(text, stdin, nil)
	if _, err := conn.Write(text); err != nil {
		return err
	}
	return readAnswer(conn.In)
}

// readAnswer reads the records of one request.
func readAnswer(r io.Reader) error {
	var out strings.Builder
	for {
		var header struct {
			Version, Type byte
			ID, Length    uint16
			Padding, _    byte
		}
		if err := binary.Read(r, binary.BigEndian, &header); err != nil {
			return err
		}
		content := make([]byte, int(header.Length)+int(header.Padding))
		if _, err := io.ReadFull(r, content); err != nil {
			return err
		}
		switch header.Type {
		case stdout:
			out.Write(content[:header.Length])
		case endRequest:
			if !strings.HasSuffix(out.String(), "\r\n\r\nok\n") {
				return fmt.Errorf("answer %q", out.String())
			}
			return nil
		}
	}
}

// record appends a record of request 1.
func record(to []byte, kind byte, content []byte) []byte {
	to = append(to, 1, kind, 0, 1)
	to = binary.BigEndian.AppendUint16(to, uint16(len(content)))
	return append(append(to, 0, 0), content...)
}

// pairs encodes names and values, each shorter than 128 bytes.
func pairs(words ...string) (text []byte) {
	for i := 0; i < len(words); i += 2 {
		text = append(text, byte(len(words[i])), byte(len(words[i+1])))
		text = append(append(text, words[i]...), words[i+1]...)
	}
	return text
}
