package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lameduck-init/lameduck/shim"
)

// errNoCommand also names the usual reason: see "Understand how CMD and ENTRYPOINT interact"
// in the Dockerfile reference, and the table of command and args in Kubernetes' "Define a
// Command and Arguments for a Container".
var errNoCommand = errors.New("no command to run: lameduck [flags] -- COMMAND [ARG...]; " +
	"an ENTRYPOINT resets the CMD of the base image, so repeat CMD (both in brackets); " +
	"a pod's command does the same, so give args")

// hinted adds a hint to the error of a command that was not found.
func hinted(err error, command string) error {
	var start *shim.StartError
	isSubcommand := slices.Contains([]string{"hold", "watch", "presets", "install"}, command)
	if isSubcommand && errors.As(err, &start) && start.Missing() {
		return fmt.Errorf("%w; for the subcommand, give %s as the first word, before any flag", err, command)
	}
	return err
}
