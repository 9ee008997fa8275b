// Package cli is the command line of lameduck: the flags, their values and variables,
// the help, and the errors for users. The program and its linter share the package.
//
//	grammar.go  the flags as a struct for kong: the fields of shim.Config, and a few more
//	line.go     a command line: the flags that were given, and the faults
//	parse.go    words and variables -> a Line, by kong's model of the flags
//	values.go   the types of the values
//	env.go      LAMEDUCK_* variables, and which of them the command does not get
//	words.go    a command as a value, split as a shell does; "did you mean"
//	config.go   a Line -> shim.Config; flags without effect
//	help.go     kong's help over the model; the recorded version
//
// A new flag is a field of shim.Config with kong's tags, a type in values.go if no other flag
// has it, a line in help.txt, rows in testdata/configs.txt, and a paragraph in docs/lameduck.8.
// Its variable, its place in the help and the suggestions follow.
package cli
