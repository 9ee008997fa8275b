package main

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

const requestTimeout = 2 * time.Second

// kind says how a request ended.
type kind string

const (
	answered kind = "answered"
	refused  kind = "refused"
	cut      kind = "cut" // reset, or closed before the whole answer
	timeout  kind = "timed out"
)

type result struct {
	number int
	kind   kind
}

// request makes one request over a new connection and retries nothing.
func request(addr string) kind {
	body, err := get(addr)
	var late net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused
	case errors.As(err, &late) && late.Timeout():
		return timeout
	case err != nil || !strings.HasPrefix(body, "HTTP/1.1 200 ") || !strings.HasSuffix(body, "\r\n\r\nok\n"):
		return cut
	}
	return answered
}

func get(addr string) (string, error) {
	deadline := time.Now().Add(requestTimeout)
	conn, err := (&net.Dialer{Deadline: deadline}).Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(deadline)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: demo\r\n\r\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
