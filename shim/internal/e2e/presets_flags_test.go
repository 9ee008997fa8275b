package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
)

// named is a preset that must exist.
func presetNamed(t *testing.T, name string) *shim.Preset {
	t.Helper()
	presets := shim.Presets()
	i := slices.IndexFunc(presets, func(p shim.Preset) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no preset %q", name)
	}
	return &presets[i]
}

// presetFlags are the flags that do what a preset does.
func presetFlags(p *shim.Preset) []string { return []string{"--preset=" + p.Name} }

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

func (b *box) commandPID() int {
	b.t.Helper()
	lameduck := b.cmd.Process.Pid
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", lameduck, lameduck))
	first, _, _ := strings.Cut(string(text), " ")
	pid, err := strconv.Atoi(first)
	if err != nil {
		b.t.Fatalf("no command: %q", text)
	}
	return pid
}

// knows wants the preset to be recognized in what runs, unless it is one that
// never is.
func wantRecognized(t *testing.T, b *box, p *shim.Preset) {
	t.Helper()
	exe, argv := b.commandLine()
	want := p.Name
	if want == "go" {
		want = ""
	}
	t.Logf("exe %q, cmdline %q", exe, argv)
	if got := presetName(preset.Match(exe, argv)); got != want {
		t.Errorf("recognized %q", got)
	}
	if got := presetName(preset.Match("", argv)); got != want {
		t.Errorf("recognized %q without the executable's path", got)
	}
}

// presetName returns the name of a preset, "" for nil.
func presetName(p *preset.Preset) string {
	if p == nil {
		return ""
	}
	return p.Name
}
