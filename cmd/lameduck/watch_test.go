package main

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim"
)

// TestVerdict: watch says which condition is met, and why the server is busy.
func TestVerdict(t *testing.T) {
	for want, v := range map[string]shim.View{
		"drained":                               {Settled: true, Quiet: true, Drained: true},
		"quiet":                                 {Settled: true, Quiet: true},
		"settled, but requests are in flight":   {Settled: true, InFlight: 1},
		"settled, but bytes come":               {Settled: true},
		"busy: requests are in flight":          {InFlight: 1},
		"busy: connections wait to be accepted": {Queued: true},
		"busy: new connections":                 {},
	} {
		if got := verdict(v); got != want {
			t.Errorf("%+v: %q, want %q", v, got, want)
		}
	}
}
