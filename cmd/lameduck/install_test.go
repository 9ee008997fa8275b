package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestInstall: install writes the same program, executable for all, and replaces an older
// file, even the running program.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lameduck")
	os.WriteFile(path, []byte("an older one"), 0o600)
	for _, program := range []string{"/proc/self/exe", path} {
		cmd := exec.Command(program, "install", dir)
		cmd.Env = []string{asMain + "=1", raceInHaste}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v: %s", err, out)
		}
	}
	ours, _ := os.ReadFile("/proc/self/exe")
	theirs, _ := os.ReadFile(path)
	if string(ours) != string(theirs) {
		t.Error("it is not the same program")
	}
	info, err := os.Stat(path)
	if entries, _ := os.ReadDir(dir); err != nil || info.Mode() != 0o755 || len(entries) != 1 {
		t.Errorf("%v has the mode %v among %v", err, info.Mode(), entries)
	}
}

// TestInstallBad: the error has the remedy, and no file is left behind.
func TestInstallBad(t *testing.T) {
	taken := t.TempDir()
	os.Mkdir(filepath.Join(taken, "lameduck"), 0o755)
	for dir, want := range map[string]string{
		"/no/such": "no such file or directory: give an existing directory",
		"/proc":    "cannot install into /proc: open /proc/.lameduck-",
		taken:      "file exists",
	} {
		got := call(t, nil, "lameduck", "install", "--", dir)
		if got.code != exitFailed || !strings.Contains(got.errOut, want) {
			t.Errorf("install %s: %+v; want %q", dir, got, want)
		}
	}
	if entries, _ := os.ReadDir(taken); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// TestInstallUser: where the user may not write, the error names the user, as of our image and a
// volume of root's.
func TestInstallUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may become another user")
	}
	cmd := exec.Command("/proc/self/exe", "install", t.TempDir())
	cmd.Env = []string{asMain + "=1", raceInHaste}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("may not become another user: ", err)
	}
	if !strings.Contains(string(out), "permission denied: user 65532 may not write there: install as the directory's owner") {
		t.Errorf("%v: %s", err, out)
	}
}
