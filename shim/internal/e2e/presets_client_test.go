package e2e

import (
	"errors"
	"io"
	"net"
	"strings"
)

// fastCGI asks php-fpm to run slow.php; see the FastCGI specification.
func fastCGI(s *site) error {
	conn, err := net.Dial("tcp", s.addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	record := func(kind byte, content string) string {
		return string([]byte{1, kind, 0, 1, byte(len(content) >> 8), byte(len(content)), 0, 0}) + content
	}
	var params strings.Builder
	for name, value := range map[string]string{"SCRIPT_FILENAME": s.dir + "/slow.php", "REQUEST_METHOD": "GET"} {
		params.WriteString(string([]byte{byte(len(name)), byte(len(value))}) + name + value)
	}
	const begin, param, stdin = 1, 4, 5
	io.WriteString(conn, record(begin, "\x00\x01\x00\x00\x00\x00\x00\x00")+record(param, params.String())+record(param, "")+record(stdin, ""))
	answer, err := io.ReadAll(conn)
	if err == nil && !strings.Contains(string(answer), "served") {
		err = errors.New("unexpected reply: " + string(answer))
	}
	return err
}
