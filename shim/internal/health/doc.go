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
// One goroutine owns all state but the mode and the list of proxied connections,
// and waits in poll(2). The goroutine starts no other goroutine and no thread.
// Without clients poll(2) has no timeout.
//
// Package net would take fewer lines, for half a megabyte of binary. Two
// measurements speak against package net: after a thousand checks the process has
// twice the anonymous memory, since each connection allocates and the collector
// first runs at 4 MB; and net.Conn.Write raises SIGPIPE, which lameduck would pass
// on to the command. Here no write raises SIGPIPE.
//
// # Limits and fairness
//
// The limit is 64 clients. When another client arrives, a client is reset: a client
// of the network with the most clients (an IPv4 address, or an IPv6 /64), among
// these a client of the address with the most clients, and among these the client
// of the lowest rank: first a client that has its answer, then a client that has
// sent no byte, then the client on which no byte has moved for the longest. A peer
// therefore loses a client to another peer only while the former has at least as
// many clients, and the checks of one peer do not fail because of another peer's
// load.
//
// A flood must not reach the command. While more connections wait to be accepted,
// clients that have sent no byte are not connected to the target; and if the client
// to reset belongs to the newcomer's own network, and a byte of a request has moved
// on its connection within the last second, the newcomer is reset instead.
//
// A client has 10 s to be connected to the command, to send a first byte, to send
// the head of a request that is answered here, and to close the other half of a
// half-closed connection; and 75 s, which is longer than checkers pause, between
// two bytes of a connection that is kept alive. Without free descriptors a client
// is reset to make room for the next, or accepting pauses for a second.
//
// # During a stop
//
// A half-close is relayed as a half-close, a reset or a refusal as a reset. Under
// Fail and Close a request in progress ends by itself. A connection on which the
// client has sent no byte yet, or on which the last byte went to the client, is
// between requests, and its next request is not relayed. Bytes that do not begin
// as HTTP/1 does (TLS, HTTP/2, a handshake in progress) cannot be given an answer:
// such a connection is reset.
//
// See poll(2), accept(2), shutdown(2), socket(7), tcp(7), ip(7), ipv6(7),
// eventfd(2).
package health
