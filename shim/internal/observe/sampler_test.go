package observe

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestLastSample: a sample is taken just before a hold ends, whatever the pause.
func TestLastSample(t *testing.T) {
	const end = 2 * time.Second
	for _, cfg := range []Config{{Floor: end, Ceiling: end}, {Until: stop.Quiet, Floor: time.Second, Ceiling: end}} {
		cfg.Traffic = traffic.Config{Poll: 250 * time.Millisecond}
		for _, at := range []time.Duration{1800 * time.Millisecond, 1950 * time.Millisecond, 1990 * time.Millisecond} {
			cfg.Start = time.Now().Add(-at)
			if pause := newSampler(cfg).pause(time.Now()); pause > end-at-lastSampleLead || pause <= 0 {
				t.Errorf("until %q: at %v the pause is %v", cfg.Until, at, pause)
			}
		}
	}
}
