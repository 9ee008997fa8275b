package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
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

// TestReleaseFlags: a release is built with the flags of the Makefile, for machines with
// an entry point of our own and for machines without.
func TestReleaseFlags(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	text, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, builds, _ := strings.Cut(string(text), "\nbuilds:\n")
	builds, _, _ = strings.Cut(builds, "\narchives:\n")
	builds, _, _ = strings.Cut(builds, "\n  # The linter")
	both := strings.Split(builds, "\n  - <<: *build\n")
	if len(both) != 2 {
		t.Fatalf("%d builds", len(both))
	}
	for i, arch := range []string{"amd64", "riscv64"} {
		cmd := exec.Command("make", "-s", "-n", "-C", "../..", "build", "GOARCH="+arch, "VERSION={{ .Version }}", "OUT=x")
		cmd.Env = append(os.Environ(), "MAKEFLAGS=")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		words, err := cli.SplitWords(strings.TrimSpace(string(out)))
		if err != nil || len(words) < 8 {
			t.Fatalf("%q: %v", words, err)
		}
		ldflags := slices.Index(words, "-ldflags")
		flags := "\n    flags: [" + strings.Join(words[2:ldflags], ", ") + "]\n" // behind go build
		if !strings.Contains(both[0], flags) {
			t.Errorf("a release lacks %s", flags)
		}
		linker := strings.Fields(words[ldflags+1])
		_, theirs, _ := strings.Cut(both[i], ">-\n")
		theirs, _, _ = strings.Cut(theirs, "\n    mod_timestamp")
		if got := strings.Fields(theirs); !slices.Equal(got, linker) {
			t.Errorf("%s: a release has\n%q\nthe Makefile\n%q", arch, got, linker)
		}
	}
}
