package check

// Mode is how health checks are treated.
type Mode uint32

// The modes. A new listener is in mode Pass.
const (
	Pass  Mode = iota // relay to the target, or answer 200 without a target
	Fail              // answer 503
	Close             // refuse connections: the listening socket is closed
)

var modeNames = []string{Pass: "pass", Fail: "fail", Close: "close"}

// String returns the mode as --health-during spells it.
func (m Mode) String() string { return modeNames[m] }
