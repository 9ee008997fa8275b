package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// kind says how a request ended.
type kind string

const (
	answered kind = "answered"
	refused  kind = "refused"
	reset    kind = "reset"
	cut      kind = "cut" // ended before the whole answer
	status5  kind = "5xx" // the balancer's word for refused, reset or cut
	timedOut kind = "timeout"
	other    kind = "other"
	// lost is a connection meant to last that ended, with what was on it. It
	// is counted apart from the requests.
	lost kind = "lost"
)

// failures are the kinds that count as failed, in the order of the table.
var failures = []kind{refused, reset, cut, status5, timedOut, other}

// kindOf is the kind of an error, or of a status where there was an answer.
func kindOf(status int, err error) kind {
	var late net.Error
	switch {
	case err == nil && status < 400:
		return answered
	case status >= 500:
		return status5
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return reset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return cut
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return timedOut
	}
	return other
}
