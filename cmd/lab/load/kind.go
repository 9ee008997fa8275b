// Package load has the clients of the laboratory: they send each request once and tell
// how the request ended.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Kind says how a request ended.
type Kind string

// Every kind but Answered is a failure.
const (
	Answered    Kind = "answered"
	Refused     Kind = "refused"
	Reset       Kind = "reset"
	Cut         Kind = "cut" // the connection ended before the whole answer
	Status5     Kind = "5xx" // a balancer's word for refused, reset or cut
	Timeout     Kind = "timeout"
	Unreachable Kind = "unreachable" // the network has no such host
	Other       Kind = "other"       // a status from 400 to 499 included
)

// Failures are the kinds of failures, in the order of the tables.
var Failures = []Kind{Refused, Reset, Cut, Status5, Timeout, Unreachable, Other}

// StatusError is the error of an answer with another status than 200.
type StatusError int

func (s StatusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// KindOf returns the kind of an error, or of none.
func KindOf(err error) Kind {
	var late net.Error
	var status StatusError
	switch {
	case err == nil:
		return Answered
	case errors.As(err, &status) && status >= 500:
		return Status5
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Reset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Cut
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Unreachable
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return Timeout
	}
	return Other
}
