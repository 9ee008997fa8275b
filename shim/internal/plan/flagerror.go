package plan

import (
	"errors"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// FlagError is a fault of a flag, or of its variable.
type FlagError struct {
	Flag   string // the flag's name, as in --delay: "delay"; an unknown flag is as it was given
	Err    error  // the fault, with the flag
	Remedy string // what would be right; "" if Err says so, or if nothing is known
}

func (e *FlagError) Error() string {
	if e.Remedy == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + ": " + e.Remedy
}

func (e *FlagError) Unwrap() error { return e.Err }

// fault returns a FlagError. The format is that of stop.InWords.
func fault(flag, remedy, format string, args ...any) error {
	return &FlagError{flag, errors.New(stop.InWords(format, args...)), remedy}
}
