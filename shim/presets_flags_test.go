package shim

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
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

// presetFlags are the flags that do what a preset does, as far as one step goes.
func presetFlags(p *Preset) (flags []string) {
	if first := p.steps()[0].signal; first != 0 && first != sig.TERM {
		flags = append(flags, fmt.Sprintf("--rewrite=TERM:%v", first))
	}
	for _, s := range p.StopSignals {
		flags = append(flags, fmt.Sprintf("--stop-signal=%v", s))
	}
	for _, e := range p.Exit {
		flags = append(flags, fmt.Sprintf("--exit-code=%d:%d", e.From, e.To))
	}
	return flags
}

// further sends the command a preset's steps after the first, which presetFlags
// does not do.
func further(b *box, p *Preset) {
	b.t.Helper()
	for _, step := range p.steps()[1:] {
		time.Sleep(step.after)
		unix.Kill(b.commandPID(), unix.Signal(step.signal))
	}
}

// step is one of a schedule: what is sent, and how long after the one before.
type step struct {
	after  time.Duration
	signal sig.Signal
}

// steps are the schedule of a preset, of which the first step may be 0 for "the
// trigger".
func (p *Preset) steps() (steps []step) {
	var after time.Duration
	for item := range strings.SplitSeq(p.Schedule, "/") {
		if d, err := time.ParseDuration(item); err == nil {
			after += d
			continue
		}
		s, _ := sig.Parse(item)
		steps = append(steps, step{after, s})
		after = 0
	}
	return steps
}

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
