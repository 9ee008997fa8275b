package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstall: install writes the same program, executable for all, and replaces an older
// file, even the running program.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lameduck")
	for _, before := range []string{"", "an older one"} {
		if before != "" {
			os.WriteFile(path, []byte(before), 0o600)
		}
		if got := call(t, nil, "install", dir); got.code != 0 || got.out+got.errOut != "" {
			t.Fatalf("%+v", got)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o755 {
			t.Fatalf("%v, %v", info, err)
		}
	}
	cmd := exec.Command(path, "install", dir) // replaces the running program
	cmd.Env = []string{asMain + "=1", raceInHaste}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	ours, _ := os.ReadFile("/proc/self/exe")
	theirs, _ := os.ReadFile(path)
	if string(ours) != string(theirs) {
		t.Error("it is not the same program")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// TestInstallBad: the error is one line with the remedy, and no file is left behind.
func TestInstallBad(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	os.MkdirAll(filepath.Join(taken, "lameduck"), 0o755)
	for args, want := range map[string]string{
		"":                       "lameduck install DIR",
		"a b":                    "lameduck install DIR",
		"--force " + dir:         "lameduck install DIR",
		dir + "/missing":         "no such file or directory: give an existing directory",
		"/proc":                  "cannot install into /proc: open /proc/.lameduck-",
		taken:                    "file exists",
		"-- " + dir + "/missing": "no such file or directory: give an existing directory",
	} {
		got := call(t, nil, append([]string{"install"}, strings.Fields(args)...)...)
		if got.code != exitFailed || !strings.Contains(got.errOut, want) || strings.Count(got.errOut, "\n") != 1 {
			t.Errorf("install %s: %+v; want %q", args, got, want)
		}
	}
	if entries, _ := os.ReadDir(taken); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}
