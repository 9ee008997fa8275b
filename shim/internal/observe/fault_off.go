//go:build !faults

package observe

import "github.com/lameduck-init/lameduck/shim/internal/sockdiag"

// openSockDiag opens sock_diag(7). Built with the tag faults, for tests, it fails for some seconds.
func openSockDiag() (dumper, error) { return sockdiag.Open() }
