package truth

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/internal/plays"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// missing returns what a case needs and the machine lacks.
func missing(c *plays.Row) []string {
	needs := []string{"ip", "mount", "pkill"}
	if c.Unprivileged {
		needs = append(needs, "setpriv", "other-users")
	}
	if c.Sleep > 0 {
		needs = append(needs, "tini")
	}
	lacking := peers.Missing(c, needs...)
	if c.Remote && unix.Access(tunDevice, unix.R_OK|unix.W_OK) != nil {
		lacking = append(lacking, tunDevice)
	}
	return lacking
}

// seconds writes a moment relative to TERM.
func seconds(d time.Duration) string { return fmt.Sprintf("%+.1f s", d.Seconds()) }
