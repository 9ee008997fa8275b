package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim"
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

// commandOf is what runs under lameduck, as shim.Recognize is told of it.
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

// knows wants the preset to be recognised in what runs, unless it is one that
// never is.
func wantRecognized(t *testing.T, b *box, p *shim.Preset) {
	t.Helper()
	exe, argv := b.commandLine()
	want := p.Name
	if want == "go" {
		want = ""
	}
	t.Logf("exe %q, cmdline %q", exe, argv)
	if got := shim.Recognize(exe, argv); got != want {
		t.Errorf("recognised %q", got)
	}
	if got := shim.Recognize("", argv); got != want {
		t.Errorf("recognised %q without the executable's path", got)
	}
}
