// Package init_test tests the duties of a PID 1: processes, signals, what the command
// inherits, the terminal, and the time that lameduck takes while nothing happens.
package init_test

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

func TestMain(m *testing.M) { box.Main(m, nil) }
