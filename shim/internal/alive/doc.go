// Package alive creates and checks alive files. An alive file on a shared volume
// shows the neighbors of a container whether its command still runs.
//
// The file exists and is locked by flock(2) while the command runs. The kernel drops
// the lock when the owner ends, in any way, so a file left by a crash does not hold
// up a neighbor. Other paths (a socket, a directory, another program's file)
// count as present if they exist.
//
// See flock(2), open(2).
package alive
