// Package preset is the table of the servers that lameduck knows, in presets.txt: the signals of a
// server's graceful stop, the processes by which the server is recognized, and the settings
// that spoil the stop.
//
// The package is pure: callers pass in the executables and command lines of processes. Each
// row of the table names a source, and the mark proven is on the rows tried by the tests on the real
// server.
package preset
