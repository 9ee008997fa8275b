package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/preset"
)

// presetNamed returns a preset, and fails the test if the name is unknown.
func presetNamed(t *testing.T, name string) *preset.Preset {
	t.Helper()
	p, ok := preset.Named(name)
	if !ok {
		t.Fatalf("no preset %q", name)
	}
	return p
}

// presetFlags returns the flags for a preset.
func presetFlags(p *preset.Preset) []string { return []string{"--preset=" + p.Name} }

// commandLine returns the path and arguments of the command, as preset.Match takes them.
func (b *box) commandLine() (exe string, argv []string) {
	b.t.Helper()
	pid := b.commandPID()
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		b.t.Fatal(err)
	}
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return exe, strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00")
}

// commandPID returns the pid of lameduck's first child.
func (b *box) commandPID() int {
	b.t.Helper()
	lameduck := b.cmd.Process.Pid
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", lameduck, lameduck))
	first, _, _ := strings.Cut(string(text), " ")
	pid, err := strconv.Atoi(first)
	if err != nil {
		b.t.Fatalf("no child of lameduck in %q", text)
	}
	return pid
}

// wantRecognized checks the preset that preset.Match finds for the command. Go programs have
// no common sign, and match no preset.
func wantRecognized(t *testing.T, b *box, p *preset.Preset) {
	t.Helper()
	exe, argv := b.commandLine()
	want := p.Name
	if want == "go" {
		want = ""
	}
	t.Logf("exe %q, cmdline %q", exe, argv)
	if got := presetName(preset.Match(exe, argv)); got != want {
		t.Errorf("preset %q recognized, want %q", got, want)
	}
	if got := presetName(preset.Match("", argv)); got != want {
		t.Errorf("preset %q recognized without the executable's path, want %q", got, want)
	}
}

// presetName returns the name of a preset, "" for nil.
func presetName(p *preset.Preset) string {
	if p == nil {
		return ""
	}
	return p.Name
}
