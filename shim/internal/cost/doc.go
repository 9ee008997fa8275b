// Package cost tells from samples of the kernel's sockets and counters what the end of a server
// cost the clients: the requests that were cut, and the connections that were refused.
//
// A Tracker follows the ports that listen. A port has ended when its last listener is gone. From
// then on a request is cut if the server's end of its connection closes while the request is in
// flight, by the last tcp_info (the event of a destroyed socket, see sock_diag(7)). A connection
// is refused if the kernel answers with a reset: each counts in OutRsts of /proc/net/snmp (RFC
// 4022), whether a client connects or uses a connection that it has kept. A reset has no port:
// the resets of the whole network namespace count, from the first port's end on.
//
// The package is pure: no clock, no system call. Callers pass the time.
package cost
