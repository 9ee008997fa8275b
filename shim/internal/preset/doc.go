// Package preset is the table of the servers that lameduck knows: the signals of a
// server's graceful stop, the processes by which the server is recognized, and the settings
// that spoil the stop.
//
// The package is pure: callers pass in the executables and command lines of processes. Each
// row of the table names a source, and Proven marks the rows tried by the tests on the real
// server.
package preset
