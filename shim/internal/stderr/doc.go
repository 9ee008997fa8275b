// Package stderr writes lines to standard error and never makes the caller wait.
//
// The command shares the descriptor, so O_NONBLOCK must not be set. A line is written
// with pwritev2(RWF_NOWAIT), or to a socket with MSG_DONTWAIT. A line that cannot be
// written at once, or not in these ways (terminals, some file systems), goes to a
// goroutine that may block without limit. The goroutine's queue is bounded: lines that
// find the queue full are dropped and counted.
//
// See pwritev2(2), send(2), pipe(7).
package stderr
