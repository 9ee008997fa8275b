package truth

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/plays"
)

func TestStallsLongest(t *testing.T) {
	signal := time.Now()
	late := []lateness{
		{signal.Add(-5 * s), 300 * ms},
		{signal.Add(-500 * ms), 7 * ms},
		{signal.Add(90 * ms), 60 * ms},
		{signal.Add(s), 200 * ms},
	}
	for precise, want := range map[bool]time.Duration{false: 300 * ms, true: 60 * ms} {
		w := &stalls{late: late}
		if got := w.longest(&plays.Row{Precise: precise}, signal); got != want {
			t.Errorf("precise %v: %v, want %v", precise, got, want)
		}
	}
}
