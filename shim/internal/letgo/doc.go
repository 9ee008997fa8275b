// Package letgo decides which of the connections that clients keep are closed during a hold, or
// sent GOAWAY on, so that each client chooses its server again.
//
// After each sample an Asker is given what the sample shows of each connection. It says which servers
// are to be asked what they speak, and whether samples should be frequent; and then on which
// connections the client may be asked to choose again: by GOAWAY, at a moment when the server is
// silent, if it speaks HTTP/2, and else by closing the connection for reading, when it is idle for
// certain, as if the client had left. The caller does that and tells the Asker, which follows what the
// server and the client then do. The package is pure: no clock, no system call.
package letgo
