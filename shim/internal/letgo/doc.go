// Package letgo decides which of the connections that clients keep are closed during a hold, or
// sent GOAWAY on, so that each client chooses its server again.
//
// After each sample an Asker is given what the sample shows of each connection. It says
// whether samples should be frequent, and which connections may be closed: those that are
// idle for certain. The caller closes them for reading, as if the client had left, and tells
// the Asker, which follows what the server and the client then do. On ports of HTTP/2 without TLS the
// Asker says instead on which connections GOAWAY may be sent, and when: goaway.go. The package is
// pure: no clock, no system call.
package letgo
