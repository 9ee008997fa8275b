package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// webCase is a web server that is stopped while a request is in flight.
type webCase struct {
	preset       string
	needs        []string
	needsFiles   []string
	files        map[string]string   // written to the site's directory, by name
	command      string              // see site.command
	setup        func(s *site)       // called after the files are written
	ready        func(b *box)        // called when the port is open
	get          func(s *site) error // nil: an HTTP request
	alwaysCut    bool                // the preset cannot save the request
	keepsRunning bool                // the server survives the preset's signal
	savedByHold  bool                // a hold saves a request that the preset cuts
	exitCode     int                 // with the preset
}

// cutWindow is how long a request must go on after the stop signal to count as not cut.
const cutWindow = 700 * time.Millisecond

// TestPresetsWeb stops real web servers with their presets: the request in flight goes on to
// its end. Without the preset TERM cuts the request.
func TestPresetsWeb(t *testing.T) {
	port := 18000
	for name, w := range webCases {
		port += 10
		at := port
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs(t, w.needs...)
			needsPaths(t, w.needsFiles...)
			for i, trigger := range append(presetNamed(t, w.preset).StopSignals, sig.TERM) {
				w.stopWithPreset(t, newSite(t, at+3+i), trigger)
			}
			if presetNamed(t, w.preset).Schedule != "TERM" {
				w.stopWithTERM(t, newSite(t, at+1))
			}
			if w.savedByHold {
				w.stopWithHold(t, newSite(t, at+2))
			}
		})
	}
}

// stopWithPreset stops the server with a preset, by TERM or by the stop signal of the
// server's image.
func (w *webCase) stopWithPreset(t *testing.T, s *site, trigger sig.Signal) {
	p := presetNamed(t, w.preset)
	b, f := w.boot(s, append(presetFlags(p), "--delay=0.1", "--log-level=debug")...)
	wantRecognized(t, b, p)
	b.signal(trigger)
	first, _, _ := strings.Cut(p.Schedule, "/")
	b.err.wait(t, "sending "+first+" to the command")
	if w.alwaysCut {
		f.wantCut()
	} else {
		f.wantInFlight(cutWindow)
		f.wantFinished()
	}
	if w.keepsRunning {
		awaitPort(t, s.addr(), true)
		b.signal(sig.INT)
	}
	b.wantExit(w.exitCode)
	t.Log(b.report())
}

// stopWithHold checks that a hold with --until=quiet saves the request.
func (w *webCase) stopWithHold(t *testing.T, s *site) {
	flags := append(presetFlags(presetNamed(t, w.preset)), "--until=quiet", "--delay=0", "--quiet-for=0.3", "--grace-period=30", "--log-level=debug")
	b, f := w.boot(s, flags...)
	b.signal(sig.TERM)
	b.err.wait(t, "until quiet")
	f.wantInFlight(cutWindow)
	f.wantFinished()
	b.err.wait(t, "to the command")
	if w.keepsRunning {
		b.signal(sig.INT)
	}
	b.waitExit()
}

// stopWithTERM checks that the request is cut without the preset.
func (w *webCase) stopWithTERM(t *testing.T, s *site) {
	b, f := w.boot(s)
	b.signal(sig.TERM)
	f.wantCut()
	t.Log("after TERM: exit code", b.waitExit())
}

// boot starts the server, and then a request.
func (w *webCase) boot(s *site, flags ...string) (*box, *inFlight) {
	s.t.Helper()
	for name, text := range w.files {
		s.write(name, text)
	}
	if w.setup != nil {
		w.setup(s)
	}
	env := []string{"HOME=" + s.dir, "XDG_DATA_HOME=" + s.dir, "XDG_CONFIG_HOME=" + s.dir}
	b := boot(s.t, env, append(append(flags, "--"), s.command(w.command)...)...)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Log(b.out.all(), b.err.all())
		}
	})
	awaitPort(s.t, s.addr(), true)
	if w.ready != nil {
		w.ready(b)
	}
	get := s.get
	if w.get != nil {
		get = func() error { return w.get(s) }
	}
	return b, s.startRequest(get)
}

// needsPaths skips the test if one of the files is missing.
func needsPaths(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			t.Skip(err)
		}
	}
}
