// Package health answers health checks in front of the command: it passes them
// through to the command's own port, byte by byte, or says 200 itself, until a
// stop begins; from then on it fails them, refuses them, or goes on.
//
// What a check of TCP alone may know: the kernel accepts a connection before we
// can tell whether the command would. If it does not, the client is reset, which
// a check that sends or reads anything notices, and one that only connects does
// not. Nor does that one notice Fail, which is an answer; Close is for it.
//
// Invariants: one goroutine owns all but the mode and the list of what was
// passed, and waits in poll(2); it starts no other, and no thread. There are never
// more than 32 clients: for one more the least worthy is reset, first one that
// has its answer already, then one that has said nothing, then the one on which
// nothing has moved for the longest. Nobody stays for ever: 10 s are for the
// connection to the command, for the first byte, for the head of a request that
// we answer, and for the other half of what is half closed; 75 s, longer than
// checkers pause, for a connection that is kept alive. Without clients there is
// no deadline. Where descriptors are scarce a client is given up for the next, or
// we look again in a second. Half a close is passed on as half a close, a reset
// (or a refusal) as a reset. No write raises PIPE.
//
// Under Fail and Close what is in progress ends by itself; a connection on which the
// client has said nothing yet, or whose last byte went to the client, is before a
// request, which is no longer passed on. What does not begin as HTTP/1 does (TLS; HTTP/2 or a handshake in
// progress, where both sides talk by turns) cannot be given an answer, and is reset.
//
// See poll(2), accept(2), shutdown(2), socket(7), tcp(7), ip(7), ipv6(7),
// eventfd(2).
package health
