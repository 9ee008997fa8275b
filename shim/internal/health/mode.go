package health

import "fmt"

// Mode is what becomes of a check.
type Mode uint32

// The modes. A listener begins with Pass.
const (
	Pass  Mode = iota // to the target; a 200 where there is none
	Fail              // a 503
	Close             // refused: nobody listens any more
)

var modes = [...]string{Pass: "pass", Fail: "fail", Close: "close"}

// ParseMode reads "pass", "fail" or "close".
func ParseMode(text string) (Mode, error) {
	for m, name := range modes {
		if text == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("%q is not what a health listener can do during a stop: give fail (HTTP 503), pass or close", text)
}

// String is the mode as it is given.
func (m Mode) String() string {
	if int(m) < len(modes) {
		return modes[m]
	}
	return fmt.Sprintf("Mode(%d)", uint32(m))
}
