package shim

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// named is a preset that must exist.
func named(t *testing.T, name string) *Preset {
	t.Helper()
	p, ok := presetNamed(name)
	if !ok {
		t.Fatalf("no preset %q", name)
	}
	return p
}

// presetFlags are the flags that do what a preset does.
func presetFlags(p *Preset) []string { return []string{"--preset=" + p.Name} }

// commandOf is what runs under lameduck, as recognise is told of it.
func (b *box) commandOf() (exe string, argv []string) {
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
func knows(t *testing.T, b *box, p *Preset) {
	t.Helper()
	exe, argv := b.commandOf()
	if p.Name == "go" {
		p = nil
	}
	t.Logf("exe %q, cmdline %q", exe, argv)
	if got := recognise(exe, argv); got != p {
		t.Errorf("recognised %v", got)
	}
	if got := recognise("", argv); got != p {
		t.Errorf("recognised %v without the executable's path", got)
	}
}
