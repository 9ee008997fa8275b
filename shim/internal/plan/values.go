package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Rewrite is one FROM:TO of --rewrite.
type Rewrite = sig.Rewrite

// Elapsed is the value of --until for no condition besides the floor.
const Elapsed stop.Reason = ""

// NoTerminationLog is the value of --termination-log for no termination log.
const NoTerminationLog = "none"

// Level is how much is written to standard error. The report of a stop is written at
// every level.
type Level int

// The levels. Each includes the previous ones.
const (
	Error Level = iota
	Warn
	Info
	Debug
)

// Choice is a setting that is on, off, or left to lameduck.
type Choice int

// The choices.
const (
	Auto Choice = iota
	Yes         // a failure is an error
	No
)

// Variable returns the name of a flag's variable: LAMEDUCK_MAX_DELAY for max-delay.
func Variable(flag string) string {
	return "LAMEDUCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Flag spells a flag with its value for a message: --delay=5 (LAMEDUCK_DELAY). The user may
// have given the variable, and under the name of another init can give nothing else.
func Flag(name string, value any) string {
	if d, isDuration := value.(time.Duration); isDuration {
		value = d.Seconds()
	}
	return fmt.Sprintf("--%s=%v (%s)", name, value, Variable(name))
}
