// Package traffic tells from samples of the kernel's sockets whether traffic has stopped.
//
// A Tracker judges the samples of a ledger, one after the other: its Verdict is for the hold, and
// its figures are for the report. Tracker.Judge is a fold over the connections of a complete
// sample: each is counted, with its request; those that have closed and may be health probes are
// kept as series; and what the list of sockets does not show is added. Then the sample has a
// Verdict and a Cause. The package is pure: no clock, no system call.
package traffic
