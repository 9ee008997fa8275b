// Package stop_test tests the stop sequence on the built binary: golden scripts, --on-stop,
// neighbors, health checks, the report and the termination log.
package stop_test

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

func TestMain(m *testing.M) { box.Main(m, nil) }
