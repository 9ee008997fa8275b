// Package observe takes samples of the container's traffic during a hold, or for package watch, and
// sends a Snapshot of each to the loop.
//
// The Sampler runs on a goroutine of its own, at the times that the hold needs. The observer shows
// the sockets to a ledger, which package traffic and package letgo read when the sample is complete. A
// question asks a server what it speaks, for letgo. The observer is made of
//
//   - source, the list of sockets: sock_diag(7) or the tables of /proc/net,
//   - late, to find ports that the server opens during the hold,
//   - events, the destroy events of sockets that closed between samples,
//   - opens, the kernel's counters, for connections in neither source nor events,
//   - self, to tell connections between our own processes,
//   - own, to tell connections of lameduck's own.
package observe
