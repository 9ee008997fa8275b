// Package preset is the table of the servers that lameduck knows: which signals stop a
// server gracefully, by which processes the server is recognized, and which settings
// spoil its stop.
//
// The package is pure: callers pass in command lines, environments and a reader of
// configuration files. Each row of the table names its source, and Proven marks the
// rows that the tests try on the real server.
package preset
