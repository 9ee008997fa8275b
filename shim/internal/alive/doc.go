// Package alive is the file by which a container tells its neighbours, through a
// volume that they share, that its command still runs; and the look for it.
//
// The file is there and locked while the command runs. The lock goes with its
// owner, however that ends, so that one left behind by a crash holds up nobody. A
// path that is no such file (a socket, a folder, another's file) is taken for what
// it says: it is there, or it is not. See flock(2).
package alive
