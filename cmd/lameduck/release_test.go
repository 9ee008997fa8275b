package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
)

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
