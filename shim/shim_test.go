package shim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/script"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

var update = flag.Bool("update", false, "write what was found into the golden files")

// scriptDir has the golden scripts.
const scriptDir = "../testdata/stop"

// TestScripts plays every golden script in virtual time.
func TestScripts(t *testing.T) {
	scripts, err := script.Load(filepath.Join(scriptDir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playVirtual(t, s) })
		})
	}
}

func playVirtual(t *testing.T, s *script.Script) {
	w := &world{start: time.Now(), signals: make(chan os.Signal, 100), ended: make(chan death, 100)}
	cfg := scriptConfig(t, s)
	p, err := cfg.plan(false)
	if err != nil {
		t.Fatal(err)
	}
	for len(s.Events) > 0 && strings.HasPrefix(s.Events[0].Text, "early ") {
		w.signals <- syscall.Signal(mustSignal(t, s.Events[0].Text[len("early "):]))
		s.Events = s.Events[1:]
	}
	code, err := run(cfg, p, w.kernel(t, s.Events))
	if err != nil {
		t.Fatal(err)
	}
	w.did("leaves %d", code)
	compare(t, s, w.actions)
}

func compare(t *testing.T, s *script.Script, actions []script.Step) {
	t.Helper()
	path := filepath.Join(scriptDir, s.Name)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := s.Format(actions)
	if *update {
		os.WriteFile(path, []byte(got), 0o644)
	} else if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// scriptConfig reads the flags of a script. The words for people are read in
// cmd/lameduck; here they are plain.
func scriptConfig(t *testing.T, s *script.Script) Config {
	t.Helper()
	cfg := Config{Command: []string{"command"}, Env: s.Env, Level: Warn}
	for _, word := range s.Flags {
		name, value, _ := strings.Cut(word, "=")
		if err := setFlag(&cfg, name, value); err != nil {
			t.Fatalf("%s: %v", word, err)
		}
	}
	return cfg
}

func setFlag(cfg *Config, name, value string) (err error) {
	switch name {
	case "--delay":
		cfg.Delay, err = time.ParseDuration(value)
	case "--grace-period":
		cfg.GracePeriod, err = time.ParseDuration(value)
	case "--rewrite":
		var r Rewrite
		r, err = ParseRewrite(value)
		cfg.Rewrites = append(cfg.Rewrites, r)
	case "--stop-signal":
		var s Signal
		s, err = ParseSignal(value)
		cfg.StopSignals = append(cfg.StopSignals, s)
	case "--exit-code":
		var m ExitMap
		_, err = fmt.Sscanf(value, "%d:%d", &m.From, &m.To)
		cfg.ExitCodes = append(cfg.ExitCodes, m)
	case "--log-level":
		cfg.Level = map[string]Level{"error": Error, "warn": Warn, "info": Info, "debug": Debug}[value]
	default:
		return fmt.Errorf("no such flag in scripts")
	}
	return err
}

// world is a system in which a script happens. Its processes end when the
// script says so; what lameduck does is written down.
type world struct {
	start   time.Time
	signals chan os.Signal
	ended   chan death
	actions []script.Step
}

const commandPID, orphanPID = 100, 101

type death struct {
	pid    int
	status proc.Status
}

func (w *world) did(format string, args ...any) {
	w.actions = append(w.actions, script.Step{At: time.Since(w.start), Text: fmt.Sprintf(format, args...)})
}

func (w *world) happen(t *testing.T, events []script.Step) {
	for _, e := range events {
		time.Sleep(time.Until(w.start.Add(e.At)))
		word, arg, _ := strings.Cut(e.Text, " ")
		switch word {
		case "exit":
			var code int
			fmt.Sscan(arg, &code)
			w.end(commandPID, proc.Status{Code: code})
		case "killed":
			w.end(commandPID, proc.Status{Signal: mustSignal(t, arg)})
		case "orphan":
			w.end(orphanPID, proc.Status{})
		default:
			w.signals <- syscall.Signal(mustSignal(t, word))
		}
	}
}

func (w *world) end(pid int, status proc.Status) {
	w.ended <- death{pid, status}
	w.signals <- syscall.SIGCHLD
}

func mustSignal(t *testing.T, text string) sig.Signal {
	s, err := sig.Parse(text)
	if err != nil {
		t.Error(err)
	}
	return s
}

func (w *world) kernel(t *testing.T, events []script.Step) kernel {
	return kernel{
		signals: w.signals,
		prepare: func() error { return nil },
		nudge: func() error {
			w.signals <- syscall.SIGCHLD
			return nil
		},
		start:   func(argv, env []string) (int, error) { return commandPID, nil },
		started: func() { go w.happen(t, events) },
		adopt:   func() error { return nil },
		kill: func(pid int, s sig.Signal) error {
			w.did("sends %v", s)
			return nil
		},
		reap: func() (int, proc.Status, bool) {
			select {
			case d := <-w.ended:
				return d.pid, d.status, true
			default:
				return 0, proc.Status{}, false
			}
		},
		line:   func(text string) { w.did("says %s", strings.TrimPrefix(text, "lameduck: ")) },
		broken: func() bool { return false },
		flush:  func() {},
	}
}
