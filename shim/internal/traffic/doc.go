// Package traffic tells from samples of the kernel's sockets whether traffic has stopped.
//
// A Tracker is shown the sockets, and returns a Sample: its Verdict is for the hold, and its
// figures are for the report. The package is pure: no clock, no system call. Callers pass the time.
//
// Tracker.Observe passes a socket on to its conn, which remembers when bytes moved and judges
// the last request (Classify), and counts both in the sample. Tracker.End adds what the list
// of sockets does not show: connections that have closed, of which those that may be health
// probes are kept as series, and connections that wait in a queue. Then the sample has a
// Verdict and a Cause.
package traffic
