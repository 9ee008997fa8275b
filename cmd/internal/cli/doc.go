// Package cli is the command line of lameduck: the flags, their values and variables,
// the help, and the errors for users. The program and its linter share the package.
//
//	grammar.go      the flags as structs for kong; a field has all that is known of a flag
//	flags.go        the flags of a grammar, found by reflection before kong is asked
//	parse.go        words and variables -> a filled grammar; kong gets only what was given
//	split.go        where the command begins; flags that do not exist
//	values.go       the types of the values
//	env.go          LAMEDUCK_* variables, and which of them the command does not get
//	servicelink.go  variables that Kubernetes makes for Services
//	shellsyntax.go  syntax of a shell in a command that runs without a shell
//	duration.go     durations in other words
//	hook.go         the configuration of a preStop hook whose flags are wrong
//	config.go       a filled grammar -> shim.Config; flags without effect
//	help.go         kong's help over the model
//	suggest.go      "did you mean"
//	command.go      hints about a command that was not found
//
// A new flag is a field in grammar.go and a line in config.go that carries the value
// into shim.Config.
package cli
