package health

import (
	"fmt"
	"slices"
)

// Mode is how a Listener treats checks.
type Mode uint32

// The modes. A new Listener is in mode Pass.
const (
	Pass  Mode = iota // relay to the target, or answer 200 without a target
	Fail              // answer 503
	Close             // refuse connections: the listening socket is closed
)

var modeNames = []string{Pass: "pass", Fail: "fail", Close: "close"}

// ParseMode parses "pass", "fail" or "close".
func ParseMode(text string) (Mode, error) {
	i := slices.Index(modeNames, text)
	if i < 0 {
		return 0, fmt.Errorf("invalid mode %q: give fail (HTTP 503), pass or close", text)
	}
	return Mode(i), nil
}

// String returns the name that ParseMode accepts.
func (m Mode) String() string { return modeNames[m] }
