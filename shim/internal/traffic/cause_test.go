package traffic

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
)

// TestCauseStays: the cause of an earlier sample stays, also if its connection is not known.
func TestCauseStays(t *testing.T) {
	tracker := New(Config{QuietFor: time.Second})
	tracker.latest.Cause = Cause{Kind: NewConnections}
	got := tracker.Judge(&ledger.Sample{Now: ledger.Trigger + time.Minute}, time.Second)
	if got.Cause.Kind != NewConnections {
		t.Errorf("the cause is %v", got.Cause)
	}
}
