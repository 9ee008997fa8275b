// Package ledger keeps the only table of connections: what samples of the kernel's sockets and
// the events of destroyed sockets have shown of each.
//
// A sample is a call of Ledger.Begin, one of Observe for each socket, one of Closed for each
// event, and one of End, which returns the Sample: a list of the connections, each compared with
// the sample before. What that means, packages traffic, letgo and cost say; they read the sample
// when it is complete.
//
// Ledger.Observe finds the Conn of a socket, which notes what has moved (Conn.update) and the
// state of the last request (Classify). Of requests and responses in one jiffy,
// PingPong asks for what the kernel tells nowhere but in a table of /proc. Ledger.End finds the
// connections that samples no longer show.
//
// The package is pure: no clock, no system call. Callers pass the time. A sample allocates no
// memory for connections already known.
package ledger
