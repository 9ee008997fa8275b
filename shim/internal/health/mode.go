package health

import "fmt"

// Mode is how a Listener treats checks.
type Mode uint32

// The modes. A new Listener is in mode Pass.
const (
	Pass  Mode = iota // relay to the target, or answer 200 without a target
	Fail              // answer 503
	Close             // refuse connections: the listening socket is closed
)

var modeNames = [...]string{Pass: "pass", Fail: "fail", Close: "close"}

// ParseMode parses "pass", "fail" or "close".
func ParseMode(text string) (Mode, error) {
	for mode, name := range modeNames {
		if text == name {
			return Mode(mode), nil
		}
	}
	return 0, fmt.Errorf("invalid mode %q: give fail (HTTP 503), pass or close", text)
}

// String returns the name that ParseMode accepts.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", uint32(m))
}
