// Package flags reads flags for tests, which cmd/internal/cli parses for users.
package flags

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Read reads flags, and "dumb-init", which stands for the fields that only dumb-init's
// flags set; other words are the environment. The values are plain: cmd/internal/cli parses
// those of users. A flag's field has the flag's name, or a tag with the name.
func Read(t *testing.T, words []string) plan.Config {
	t.Helper()
	cfg := plan.Config{Level: plan.Warn}
	for _, word := range words {
		flag, isFlag := strings.CutPrefix(word, "--")
		switch name, value, _ := strings.Cut(flag, "="); {
		case isFlag:
			cfg.DelayGiven = cfg.DelayGiven || name == "delay"
			cfg.LingerGiven = cfg.LingerGiven || name == "linger"
			if !tables.Set(&cfg, name, value, stop.ParseSchedule, check.Parse, sig.ParseRewrite, sig.Parse, exitCode, onStop,
				func(text string) (*check.Request, error) { return check.ParseRequest("GET " + text) },
				func(text string) plan.Level { return levels[text] },
				func(text string) check.Mode { return modes[text] }) {
				t.Fatalf("no such flag: %s", word)
			}
		case word == "dumb-init":
			cfg.Session, cfg.StopSelfOnTSTP, cfg.TermGroup, cfg.LingerGiven = true, true, true, true
		default:
			cfg.Env = append(cfg.Env, word)
		}
	}
	return cfg
}

var (
	levels = map[string]plan.Level{"error": plan.Error, "warn": plan.Warn, "info": plan.Info, "debug": plan.Debug}
	modes  = map[string]check.Mode{"pass": check.Pass, "fail": check.Fail, "close": check.Close}
)

func exitCode(text string) (m preset.ExitCode, err error) {
	text, m.Stopped = strings.CutPrefix(text, "stop:")
	_, err = fmt.Sscanf(text, "%d:%d", &m.From, &m.To)
	return m, err
}

func onStop(text string) (to plan.OnStop, err error) {
	s, noSignal := sig.Parse(text)
	switch {
	case check.IsRequest(text):
		to.Request, err = check.ParseRequest(text)
	case noSignal == nil && s.String() == text:
		to.Signal = s
	default:
		to.Command = []string{text}
	}
	return to, err
}
