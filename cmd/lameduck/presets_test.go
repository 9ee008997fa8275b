package main

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim"
)

// TestExplainPreset: lameduck presets NAME has a row for each thing that is known.
func TestExplainPreset(t *testing.T) {
	want := map[string]string{
		"varnish": `varnish, varnishd
  sends     TERM, on TERM
  effect    stops its child at once, which cuts all requests
  caveat    every stop cuts what is under way: let the hold wait for it, with
            --until=drained or --until=quiet
  source    varnishd(1), which speaks of no signal; tried with 7.1 (tested on
            the real server)
`,
		"puma": `puma
  sends     TERM, on TERM
  effect    closes its listeners, finishes the requests and ends by TERM, so
            with 143, which is reported as 0
  kept      connections that clients keep: closes idle connections at once and
            the others after their answer
  exit      143 is reported as 0
  source    puma docs/signals.md; raise_exception_on_sigterm in its DSL (tested
            on the real server)
`,
	}
	for _, p := range shim.Presets() {
		if text, ok := want[p.Name]; ok && explainPreset(p) != text {
			t.Errorf("%s:\n%swant:\n%s", p.Name, explainPreset(p), text)
		}
		delete(want, p.Name)
	}
	if len(want) > 0 {
		t.Errorf("no preset: %v", want)
	}
}
