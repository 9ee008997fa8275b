package main

import (
	"errors"
	"fmt"

	"github.com/alecthomas/kong"
)

// cli is the grammar. Values stay the words that were given until config reads
// them, so that an error can name what it came from. All are lists; where only
// one value makes sense the last one counts.
type cli struct {
	Rewrite       words `short:"r"`
	StopSignal    words
	Preset        words `short:"p"`
	Group         bool  `short:"g"`
	DropUnhandled bool

	holdFlags
	StopSchedule words
	KillAfter    words
	Linger       words

	AliveFile    words
	Health       words
	HealthDuring words

	ExitCode words `short:"e"`

	Subreaper         *bool `short:"s"`
	ParentDeathSignal words

	reportFlags

	Explain bool
	Version bool
	Help    bool `short:"h"`
	HelpAll bool

	Command []string `kong:"-"` // the parser never sees the command
}

// holdFlags say how to hold; the hook has them too.
type holdFlags struct {
	Delay       words `short:"d"`
	Until       words `short:"u"`
	MaxDelay    words
	GracePeriod words
	WaitGone    words
	OnStop      words
	trafficFlags
}

// trafficFlags say what counts as traffic.
type trafficFlags struct {
	QuietFor     words
	MaxSilence   words
	CountPort    words
	IgnorePort   words
	IgnorePeer   words
	IgnoreProbes bool
}

// reportFlags say where what is to be told goes.
type reportFlags struct {
	TerminationLog words
	LogLevel       words
	LogFormat      words
}

// words are the values of a flag as they were given.
type words []string

// Decode adds one, as it is: what parts it is the flag's own business.
func (w *words) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("value") // PopValueInto would replace bytes that are not UTF-8
	*w = append(*w, token.String())
	return err
}

// twinless are the flags without an environment twin: they ask, and run nothing.
var twinless = []string{"explain", "version", "help", "help-all"}

// parse reads the command line, and the environment's twins for what it leaves
// out.
func parse(args, env []string) (*cli, *twins, error) {
	var c cli
	k, err := newParser(&c)
	if err != nil {
		return nil, nil, err
	}
	const hint = "lameduck --help-all lists the flags"
	flags, command, err := splitCommand(args, k.Model.Flags)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (%s)", err, hint)
	}
	t, err := readFlags(k, flags, env, nil, hint)
	if err != nil {
		return nil, nil, err
	}
	c.Command = dropDashes(command)
	return &c, t, nil
}

// newParser returns kong for grammar, a struct.
func newParser(grammar any) (*kong.Kong, error) {
	return kong.New(grammar, kong.Name("lameduck"), kong.NoDefaultHelp())
}

// readFlags parses args. Variables that belong to the flags of another grammar, others,
// are let be. An error ends with the hint.
func readFlags(k *kong.Kong, args, env []string, others any, hint string) (*twins, error) {
	var let []*kong.Flag
	if others != nil {
		let = kong.Must(others, kong.NoDefaultHelp()).Model.Flags
	}
	t := readTwins(env, k.Model.Flags, let)
	kong.Resolvers(t).Apply(k)
	_, err := k.Parse(args)
	if variable := (*variableError)(nil); errors.As(err, &variable) {
		return nil, variable
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, hint)
	}
	return t, nil
}

// read parses args, which hold flags and nothing else, into grammar; see readFlags.
func read(grammar any, args, env []string, others any, hint string) (*twins, error) {
	k, err := newParser(grammar)
	if err != nil {
		return nil, err
	}
	if _, _, err := splitCommand(args, k.Model.Flags); err != nil {
		return nil, fmt.Errorf("%w (%s)", err, hint)
	}
	return readFlags(k, args, env, others, hint)
}
