// Package report writes the report of a stop, in words and in JSON: one line at the
// trigger, since KILL may come at any time, one line at the end, and one line between the
// two if the command still runs one second before the grace period ends.
//
// The package is pure: a [Stop] is plain data about one stop at one moment, and each
// line is a function of the data. The names in JSON are promises: names may be added, but
// no name changes its meaning or disappears within one [Schema].
package report
