package observe

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestMain runs the tests in a new network namespace.
func TestMain(m *testing.M) {
	netns.Main(m, 0)
}

// usual is the configuration behind the times in tests.
var usual = traffic.Config{QuietFor: 3 * time.Second, MaxSilence: 30 * time.Second, Poll: 250 * time.Millisecond}

// config is the configuration of a hold until silence on a port.
func config(start time.Time, port uint16) Config {
	return Config{Start: start, Traffic: usual, Ports: []uint16{port}, Gate: stop.Gate{Until: stop.Quiet}}
}
