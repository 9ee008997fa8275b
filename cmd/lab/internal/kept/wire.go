package kept

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// wire is a protocol with one request at a time on a connection. open, which may be nil,
// begins a connection, and may return another that is used on top.
type wire struct {
	open func(*load.Conn) (*load.Conn, error)
	ask  func(conn *load.Conn, name, think string) (again bool, err error)
}

var wires = map[string]wire{
	"http":      {ask: askHTTP},
	"tls":       {openTLS, askHTTP},
	"websocket": {openWebSocket, askWebSocket},
	"postgres":  {openPostgres, askPostgres},
	"redis":     {ask: askRedis([]string{"*-1", "+OK"}, "BLPOP none %[2]f\r\nDEBUG LOG %[1]s\r\n")},
	// The first of two commands is answered at once.
	"pipeline": {ask: askRedis([]string{"+OK", "*-1"}, "DEBUG LOG %[1]s\r\nBLPOP none %[2]f\r\n")},
}

func path(name, think string) string { return "/app?name=" + name + "&think=" + think }

func askHTTP(conn *load.Conn, name, think string) (again bool, err error) {
	answer, err := conn.HTTP(path(name, think), "duck", true)
	if err == nil && answer.Status != http.StatusOK {
		err = fmt.Errorf("status %d", answer.Status)
	}
	return answer.Again, err
}

func openTLS(conn *load.Conn) (*load.Conn, error) {
	secret := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	return &load.Conn{Conn: secret, In: bufio.NewReader(secret)}, secret.Handshake()
}

func openWebSocket(conn *load.Conn) (*load.Conn, error) {
	fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: lab\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	answer, err := http.ReadResponse(conn.In, nil)
	if err == nil && answer.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New(answer.Status)
	}
	return conn, err
}

// askWebSocket sends a message, whose mask is 0, and reads one. See RFC 6455, section 5.2.
func askWebSocket(conn *load.Conn, name, think string) (again bool, err error) {
	const text, masked = 0x81, 0x80
	message := name + " " + think
	frame := append([]byte{text, masked | byte(len(message)), 0, 0, 0, 0}, message...)
	if _, err := conn.Write(frame); err != nil {
		return false, err
	}
	var header [2]byte
	if _, err := io.ReadFull(conn.In, header[:]); err != nil {
		return false, err
	}
	if header[0] != text {
		return false, io.EOF // the server closes
	}
	_, err = conn.In.Discard(int(header[1]))
	return true, err
}

// openPostgres opens a session. See PostgreSQL's documentation, Frontend/Backend Protocol.
func openPostgres(conn *load.Conn) (*load.Conn, error) {
	const version = 3 << 16
	text := binary.BigEndian.AppendUint32(nil, version)
	text = append(text, "user\x00postgres\x00database\x00postgres\x00\x00"...)
	conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text)+4)), text...))
	return conn, readPostgres(conn.In)
}

func askPostgres(conn *load.Conn, name, think string) (again bool, err error) {
	query := fmt.Sprintf("SELECT pg_sleep(%f) -- %s\x00", seconds(think), name)
	text := binary.BigEndian.AppendUint32([]byte("Q"), uint32(len(query)+4))
	if _, err := conn.Write(append(text, query...)); err != nil {
		return false, err
	}
	return true, readPostgres(conn.In)
}

// readPostgres reads messages until the server is ready for a query.
func readPostgres(in *bufio.Reader) error {
	for {
		var header [5]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return err
		}
		text := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(in, text); err != nil {
			return err
		}
		switch header[0] {
		case 'E':
			return fmt.Errorf("the answer is %q", text)
		case 'Z':
			return nil
		}
	}
}

// askRedis returns a request of two commands: the server waits for an element of a list, and
// writes the name to its log.
func askRedis(answers []string, commands string) func(conn *load.Conn, name, think string) (again bool, err error) {
	return func(conn *load.Conn, name, think string) (again bool, err error) {
		if _, err := fmt.Fprintf(conn, commands, name, seconds(think)); err != nil {
			return false, err
		}
		for _, want := range answers {
			line, err := conn.In.ReadString('\n')
			if err != nil {
				return false, err
			}
			if strings.TrimSpace(line) != want {
				return false, fmt.Errorf("the answer is %q", line)
			}
		}
		return true, nil
	}
}

func seconds(think string) float64 {
	d, _ := time.ParseDuration(think)
	return d.Seconds()
}
