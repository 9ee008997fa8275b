package init_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestPlainBuild: a program built without the Makefile's flags forwards the same signals,
// with the C library or without, and calls itself a plain build in --version. Its command
// inherits neither the signal mask nor ignored signals, but the whole environment, of which the variables of
// Go's runtime are hidden from lameduck's own.
func TestPlainBuild(t *testing.T) {
	t.Parallel()
	lost := sig.Set(0)
	if !sigcatch.Direct {
		lost = sig.SetOf(sig.URG)
	}
	for _, cgo := range []string{"0", "1"} {
		if _, err := exec.LookPath("gcc"); err != nil && cgo == "1" {
			t.Log("gcc is not installed: not built with the C library")
			continue
		}
		path := filepath.Join(t.TempDir(), "lameduck")
		build := exec.Command("go", "build", "-o", path, "./cmd/lameduck")
		build.Dir = testutil.Root()
		build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		b := box.Setup{Init: path}.Catch(t, "-d 1")
		for s := range stormy.Without(lost).All {
			b.Signal(s)
			b.Out.Wait("got " + s.String())
		}
		b.WantHold(b.Stop(), time.Second, "elapsed")
		text := "$P --version | grep -c ', a plain build (see '; " + box.Binary + ` --version | grep -vc plain; trap '' HUP USR2; export GOGC=77 GODEBUG=x=y
			exec $P -- sh -c 'grep -E "Sig(Blk|Ign)" /proc/self/status; tr "\0" "\n" </proc/$PPID/environ | grep -c ^GO; echo $GOGC $GODEBUG'`
		const want = "1\n1\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0\n77 x=y\n"
		if got := script(t, t.TempDir(), "P="+path, text); got != want {
			t.Errorf("a plain build and its command printed %q, want %q", got, want)
		}
	}
}
