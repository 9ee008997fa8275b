// Package traffic tells from samples of the kernel's sockets whether traffic has stopped.
//
// A Tracker is given samples and answers with a Verdict, for the hold, and a Summary, for
// the report. The package is pure: no clock, no system call. Callers pass the time.
package traffic
