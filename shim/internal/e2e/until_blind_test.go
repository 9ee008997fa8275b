package e2e

import (
	"strings"
	"testing"
	"time"
)

// TestUntilDegraded: without netlink or parts of /proc, lameduck is less certain and
// warns once. A source that cannot be read never counts as silence or as "no listener".
func TestUntilDegraded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stage           string
		observer, scope string // in the report; "": no source is left, and the hold lasts to the ceiling
		warning         string
	}{
		"nothing":               {"stage", "sock_diag", "descriptors", ""},
		"a netlink group":       {"stage:no-groups", "sock_diag", "descriptors", ""},
		"netlink":               {"stage:no-netlink", "/proc/net", "descriptors", "observing the traffic through /proc/net: sock_diag: "},
		"netlink, nobody":       {"stage:no-netlink,uid=65534", "/proc/net", "descriptors", "observing the traffic through /proc/net: sock_diag: "},
		"/proc/net":             {"stage:no-proc-net", "sock_diag", "descriptors", ""},
		"/proc":                 {"stage:no-proc", "sock_diag", "namespace", ""},
		"/proc, nobody":         {"stage:uid=65534,no-proc", "sock_diag", "namespace", ""},
		"/proc/net nor netlink": {"stage:no-proc-net,no-netlink", "", "", "sock_diag: "},
		"/proc nor netlink":     {"stage:no-proc,no-netlink", "", "", "sock_diag: "},
	} {
		t.Run("without "+name, func(t *testing.T) {
			t.Parallel()
			if strings.HasSuffix(c.stage, ",no-proc") { // the mount must come before the change of the uid
				c.stage = "stage:no-proc,uid=65534"
			}
			ns := newNamespace(t)
			a := ns.bootUntil(c.stage, "quiet", append(quiet1sFlags, "--max-delay=5"), helperCommand("app", "[::]:0")...)
			a.dial("127.0.0.1").ask("hello") // an idle connection
			start := a.trigger()
			repeatFor(2*quiet1s, 200*time.Millisecond, func() { a.shortConn("127.0.0.1") })
			a.wantHolding("a request had just ended")
			if c.observer == "" {
				a.wantHoldSince(start, 5*time.Second, "blind")
			} else {
				a.wantHoldSince(time.Now(), quiet1s-300*time.Millisecond, "quiet")
				a.wantSource(c.observer, c.scope)
			}
			a.wantWarning(c.warning)
		})
	}
}

// TestUntilUnsure: a command without listeners, when lameduck can only partly know.
func TestUntilUnsure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stage   string
		reason  string
		warning string
	}{
		"nothing":               {"stage", "no_listener", ""},
		"netlink":               {"stage:no-netlink", "no_listener", "observing the traffic through /proc/net: "},
		"/proc/net":             {"stage:no-proc-net", "blind", "cannot observe the traffic, so the hold lasts to its ceiling: cannot open \"/proc/net/"},
		"/proc":                 {"stage:no-proc", "blind", "cannot observe the traffic, so the hold lasts to its ceiling: cannot open \"/proc/net/"},
		"/proc/net nor netlink": {"stage:no-proc-net,no-netlink", "blind", "sock_diag: "},
		"/proc nor netlink":     {"stage:no-proc,no-netlink", "blind", "sock_diag: "},
	} {
		t.Run("without "+name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil(c.stage, "quiet", append(quiet1sFlags, "--max-delay=3"), helperCommand("app")...)
			start := a.trigger()
			at := time.Duration(0)
			if c.reason == "blind" {
				at = 3 * time.Second
			}
			a.wantHoldSince(start, at, c.reason)
			a.wantWarning(c.warning)
		})
	}
}
