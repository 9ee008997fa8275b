package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of builds other than make build's for this machine.

// TestPlainBuild: a program built without the Makefile's flags forwards the same signals,
// with the C library or without, and calls itself a plain build in --version.
func TestPlainBuild(t *testing.T) {
	lost := sig.Set(0)
	if !sigcatch.Direct {
		lost = sig.SetOf(sig.URG)
	}
	for _, cgo := range []string{"0", "1"} {
		t.Run("CGO_ENABLED="+cgo, func(t *testing.T) {
			if cgo == "1" {
				needs(t, "gcc")
			}
			path := filepath.Join(t.TempDir(), "lameduck")
			runBuild(t, "env", "CGO_ENABLED="+cgo, "go", "build", "-o", path, "./cmd/lameduck")
			wantForwardingBy(t, sig.Set(^uint64(0)).Without(notForwarded|lost), path)
			if version := versionOf(t, path); !strings.HasSuffix(version, ", a plain build (see docs/install.md)\n") {
				t.Errorf("--version of a plain build: %q, want it called plain", version)
			}
		})
	}
	if version := versionOf(t, binary); strings.Contains(version, "plain") {
		t.Errorf("--version of make build: %q, want no plain build", version)
	}
}

func versionOf(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command(path, "--version").Output()
	if err != nil || !strings.HasPrefix(string(out), "lameduck version ") {
		t.Errorf("%s --version: %q, %v", path, out, err)
	}
	return string(out)
}

// TestPlainBuildKeeps: under a plain build, the command inherits neither the signal mask nor
// ignored signals, as docs/install.md says, but the whole environment.
func TestPlainBuildKeeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lameduck")
	runBuild(t, "go", "build", "-o", path, "./cmd/lameduck")
	cmd := exec.Command("sh", "-c", `trap '' HUP USR2; exec "$0" -- sh -c 'grep -E "Sig(Blk|Ign)" /proc/self/status; echo $GOGC $GODEBUG'`, path)
	cmd.Env = append(os.Environ(), "GOGC=77", "GODEBUG=x=y")
	out, err := cmd.Output()
	want := "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n77 x=y\n"
	if err != nil || string(out) != want {
		t.Errorf("the command printed %q (error %v), want %q", out, err, want)
	}
}

// foreignArchs are the processors that TestForeignBuild builds for, each with the rooms
// whose tests run in an emulator: sigcatch has assembly for amd64 and arm64; s390x is
// big-endian, for the rooms that decode the kernel's replies. The emulator renumbers
// real-time signals: 35 arrives as 32, which lameduck drops unless a rewrite names 32. The
// binary for s390x has no handlers of its own, so rewrites do not help, and 35 and 36 are
// lost.
var foreignArchs = []struct {
	arch, emulator string
	rooms          []string
	flags          []string
	lost           sig.Set
}{
	{"amd64", "qemu-x86_64", []string{"sigcatch"}, []string{"-r", "32:32,33:33"}, 0},
	{"arm64", "qemu-aarch64", []string{"sigcatch"}, []string{"-r", "32:32,33:33"}, 0},
	{"s390x", "qemu-s390x", []string{"proc", "procfs", "scope", "testutil/script", "sig", "sigcatch", "sockdiag", "stop", "tcp", "traffic"}, nil, sig.SetOf(35, 36)},
}

// TestForeignBuild: signals, orphans and holds work on other processors, under QEMU's user
// emulation.
func TestForeignBuild(t *testing.T) {
	for _, f := range foreignArchs {
		if f.arch == runtime.GOARCH {
			continue
		}
		t.Run(f.arch, func(t *testing.T) {
			needs(t, "make", f.emulator)
			test := []string{"env", "GOARCH=" + f.arch, "go", "test", "-exec", f.emulator}
			for _, room := range f.rooms {
				test = append(test, "./shim/internal/"+room)
			}
			runBuild(t, test...)
			path := filepath.Join(t.TempDir(), "lameduck")
			runBuild(t, "make", "build", "GOARCH="+f.arch, "OUT="+path)
			lameduck := append([]string{testutil.Must(exec.LookPath(f.emulator)), path}, f.flags...)
			wantForwardingBy(t, sig.Set(^uint64(0)).Without(notForwarded|f.lost), lameduck...)
		})
	}
}

func runBuild(t *testing.T, words ...string) {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = testutil.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
}
