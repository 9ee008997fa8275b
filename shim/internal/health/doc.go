// Package health answers health checks in front of the command. Until a stop
// begins, checks are relayed byte by byte to the command's own port or, without a
// target, answered with 200. From then on the listener fails checks, refuses
// connections, or goes on relaying.
//
// # Checks that only connect
//
// The kernel accepts a connection before the listener can know whether the
// command would. If the command refuses, the client is reset. A check that sends
// or reads a byte notices the reset; a check that only connects does not. Nor
// does such a check notice Fail, which is an answer; Close is for such checks.
//
// # The loop
//
// One goroutine owns all state but the mode and the list of connections to servers,
// and waits in poll(2). It starts no other goroutine and no thread. Without
// clients poll(2) has no timeout.
//
// Package net would take fewer lines, for half a megabyte of binary. Two
// measurements speak against it: after a thousand checks the process has twice
// the anonymous memory, since each connection allocates and the collector first
// runs at 4 MB; and net.Conn.Write raises SIGPIPE, which lameduck would pass on to
// the command. Here no write raises SIGPIPE.
//
// # Clients
//
// There are at most 16 clients. Another one takes the place of the client that has
// been silent longest, and so it does without a free descriptor. Without clients,
// accepting then pauses for a second.
//
// A client is connected to the command when its first byte has come, or after
// 200 ms for protocols in which the server speaks first. So clients that say
// nothing reach the command 80 times a second at most, however many there are.
//
// A client may be silent for 75 s, which is longer than checkers pause.
//
// A half-close is relayed as a half-close, a reset or a refusal as a reset.
//
// # During a stop
//
// Under Fail and Close a request in progress is still relayed, and so is its answer.
// A relayed connection between requests ends after 2 s; a request that comes on it
// earlier is answered here. What a client sends no longer prolongs its time. Bytes
// that do not begin as HTTP/1 does (TLS, HTTP/2) cannot be given an answer: such a
// connection is reset.
//
// # Requests
//
// Ask sends a request of lameduck's own to the command, as --on-stop and --wait-url have it, by the
// same sockets. Like the relayed connections, those of Ask are in Conns, and do not count as traffic.
//
// See poll(2), accept(2), shutdown(2), socket(7), tcp(7), ip(7), ipv6(7),
// eventfd(2).
package health
