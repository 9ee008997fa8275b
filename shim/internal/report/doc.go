// Package report says in words and in JSON what a stop will do, for --explain, and what it has done: a
// line at the trigger, since KILL may come at any time, and up to three lines at the end, or a second
// before the end of the grace period if the command still runs: the outcome, what kept the hold up, and
// a suggestion. sentences.go has those that are said in several places.
//
// The package is pure: a [Stop] is plain data about a stop at a moment, and each line is a
// function of the data. The names in JSON are promises: names may be added, but no name
// changes its meaning or disappears within one [Schema].
package report
