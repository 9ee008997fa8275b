//go:build faults

package observe

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// broken is when sock_diag(7) fails, after the process has begun to use it.
var broken = struct{ from, to time.Duration }{time.Second, 5 * time.Second}

var begun time.Time

type faultyDumper struct{ dumper }

func (f faultyDumper) Dump(q sockdiag.Query, visit func(*tcp.Socket)) error {
	if used := time.Since(begun); os.Getenv("FAULT_AT") == "sock_diag" && used >= broken.from && used < broken.to {
		return unix.EPERM
	}
	return f.dumper.Dump(q, visit)
}

func openSockDiag() (dumper, error) {
	if begun.IsZero() {
		begun = time.Now()
	}
	conn, err := sockdiag.Open()
	return faultyDumper{conn}, err
}
