// Package observe takes samples of the container's traffic during a hold and sends a
// Snapshot of each to the loop.
//
// The Sampler runs on a goroutine of its own. The observer gives a traffic.Tracker one
// sample at a time, and is made of
//
//   - source, which lists the sockets: sock_diag(7) or the tables of /proc/net,
//   - events, the destroy events of sockets that closed between samples,
//   - opens, the kernel's counters, for connections that neither of both shows,
//   - self, which leaves out connections of the container to itself,
//   - proxied, which leaves out connections of the health listener,
//   - pingpongCache, for requests whose order the ages in tcp_info do not show.
package observe
