package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// web is a server of requests over HTTP, of which one is in flight when it is
// told to stop.
type webCase struct {
	preset       string
	needs        []string
	needFiles    []string          // files that are needed too
	files        map[string]string // in which PORT, BACKEND and DIR stand for the site's
	command      string
	setup        func(s *site)       // what else is needed before it starts
	ready        func(b *box)        // waits for what an open port does not say
	get          func(s *site) error // nil: over HTTP
	alwaysCut    bool                // even under the preset
	keepsRunning bool                // and goes on
	savedByHold  bool                // what the preset cuts a hold waits for
	exitCode     int                 // under the preset
}

// spell is how long what is not cut at once has to live before it counts as
// unhurt.
const cutWindow = 700 * time.Millisecond

// TestPresetsWeb stops real servers as their preset has it: the request that is
// in flight goes on to its end. A plain TERM cuts it, where the server does that.
func TestPresetsWeb(t *testing.T) {
	port := 18000
	for name, w := range webCases {
		port += 10
		at := port
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs(t, w.needs...)
			needsPaths(t, w.needFiles...)
			for i, trigger := range append(named(t, w.preset).StopSignals, sig.TERM) {
				w.underPreset(t, newSite(t, at+3+i), trigger)
			}
			if named(t, w.preset).Schedule != "TERM" {
				w.underTerm(t, newSite(t, at+1))
			}
			if w.savedByHold {
				w.underHold(t, newSite(t, at+2))
			}
		})
	}
}

// underPreset stops it as its image does, or with TERM.
func (w *webCase) underPreset(t *testing.T, s *site, trigger sig.Signal) {
	p := named(t, w.preset)
	b, f := w.boot(s, append(presetFlags(p), "--delay=0.1", "--log-level=debug")...)
	knows(t, b, p)
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
	t.Log(b.err.all()[len(b.err.all())-1])
}

// underHold has the hold wait for what the preset cannot save.
func (w *webCase) underHold(t *testing.T, s *site) {
	flags := append(presetFlags(named(t, w.preset)), "--until=quiet", "--delay=0", "--quiet-for=0.3", "--grace-period=30", "--log-level=debug")
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

// underTerm is what the preset is for.
func (w *webCase) underTerm(t *testing.T, s *site) {
	b, f := w.boot(s)
	b.signal(sig.TERM)
	f.wantCut()
	t.Log("after TERM: exit code", b.waitExit())
}

// start is the server with a request in flight.
func (w *webCase) boot(s *site, flags ...string) (*box, *inFlight) {
	s.t.Helper()
	for name, text := range w.files {
		s.write(name, text)
	}
	if w.setup != nil {
		w.setup(s)
	}
	env := []string{"BACKEND=" + s.backend.addr, "HOME=" + s.dir, "XDG_DATA_HOME=" + s.dir, "XDG_CONFIG_HOME=" + s.dir}
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

// needsFiles skips a test where one of these files is not there.
func needsPaths(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			t.Skip(err)
		}
	}
}
