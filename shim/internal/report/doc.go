// Package report writes the report of a stop, in words and in JSON: a line at the trigger,
// since KILL may come at any time, a line at the end, and a line between the two if the
// command still runs a second before the grace period ends.
//
// The package is pure: a [Stop] is plain data about a stop at a moment, and each line is a
// function of the data. The parts of a line do not contradict each other. The names in JSON
// are promises: names may be added, but no name changes its meaning or disappears within
// one [Schema].
package report
