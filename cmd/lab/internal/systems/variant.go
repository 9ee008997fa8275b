package systems

// variant takes something away from a kernel, and names the results expected.
type variant struct {
	name     string
	command  string   // of the guest, as lameduck's command
	kernel   []string // parameters
	lameduck []string // flags
	diag     bool     // load tcp_diag

	observer string // in the report
	ended    string // in the report: the reason for the end of the hold
	inFlight bool   // the observer sees requests in flight
	loses    bool   // requests must be lost
	exit     int
}

// Under TCG and on a busy machine a request takes up to a second. The quiet interval
// is longer than that, and the slow request is longer than the interval.
var (
	untilQuiet = []string{"--until=quiet", "--quiet-for=4s", "--max-delay=60s", "--grace-period=90", "--log-format=json"}
	untilBlind = []string{"--until=quiet", "--quiet-for=4s", "--max-delay=15s", "--grace-period=90", "--log-format=json"}
	noHold     = []string{"--log-format=json"}
)

const (
	serveExit = 7 // of the guest's server after TERM
	noProc    = "GUEST_PROC=no"
)

var variants = []variant{
	{name: "complete", command: "serve", lameduck: untilQuiet, diag: true,
		observer: "sock_diag", ended: "quiet", inFlight: true, exit: serveExit},
	{name: "without tcp_diag", command: "serve", lameduck: untilQuiet,
		observer: "/proc/net", ended: "quiet", exit: serveExit},
	{name: "without IPv6", command: "serve", lameduck: untilQuiet, diag: true, kernel: []string{"ipv6.disable=1"},
		observer: "sock_diag", ended: "quiet", inFlight: true, exit: serveExit},
	{name: "without /proc", command: "serve", lameduck: untilQuiet, diag: true, kernel: []string{noProc},
		observer: "sock_diag", ended: "quiet", inFlight: true, exit: serveExit},
	{name: "without either", command: "serve", lameduck: untilBlind, kernel: []string{noProc},
		observer: "none", ended: "blind", exit: serveExit},
	{name: "no hold asked for", command: "serve", lameduck: noHold, diag: true, loses: true, exit: serveExit},
	{name: "unit tests", command: "rooms", lameduck: noHold, diag: true},
}
