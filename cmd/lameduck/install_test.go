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

// installAs has a program installed into a folder, by a user unless it is root, and returns what is said.
func installAs(program, dir string, user uint32) (string, error) {
	cmd := exec.Command(program, "install", "--", dir)
	cmd.Env = []string{asMain + "=1", raceInHaste}
	if user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestInstall: install writes the same program, executable for all, and replaces an older
// file, even the running program.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lameduck")
	os.WriteFile(path, []byte("an older one"), 0o600)
	for _, program := range []string{"/proc/self/exe", path} {
		if out, err := installAs(program, dir, 0); err != nil || out != "" {
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

// TestInstallBad: the error has the remedy, and no file is left behind. Where the user may not write, it
// names the user, as of our image and a volume of root's.
func TestInstallBad(t *testing.T) {
	taken, roots := t.TempDir(), t.TempDir()
	os.Mkdir(filepath.Join(taken, "lameduck"), 0o755)
	for dir, want := range map[string]string{
		"/no/such": "no such file or directory: give an existing directory",
		"/proc":    "cannot install into /proc: open /proc/.lameduck-",
		taken:      "file exists",
		roots:      "permission denied: user 65532 may not write there: install as the directory's owner",
	} {
		user := uint32(0)
		if dir == roots {
			user = 65532
		}
		out, err := installAs("/proc/self/exe", dir, user)
		if errors.Is(err, syscall.EPERM) {
			t.Log("may not become another user: ", err)
			continue
		}
		if err == nil || err.Error() != "exit status 125" || !strings.Contains(out, want) {
			t.Errorf("install %s: %v, %s; want %q", dir, err, out, want)
		}
	}
	if entries, _ := os.ReadDir(taken); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}
