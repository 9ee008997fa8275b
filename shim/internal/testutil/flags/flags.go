// Package flags reads flags for tests, which cmd/internal/cli parses for users.
package flags

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Read reads flags, and "dumb-init", which stands for the fields that only dumb-init's
// flags set; other words are the environment. The values are plain: cmd/internal/cli parses
// those of users.
func Read(t *testing.T, words []string) plan.Config {
	t.Helper()
	cfg := plan.Config{Level: plan.Warn}
	for _, word := range words {
		flag, isFlag := strings.CutPrefix(word, "--")
		switch name, value, _ := strings.Cut(flag, "="); {
		case isFlag:
			if err := setFlag(&cfg, name, value); err != nil {
				t.Fatalf("%s: %v", word, err)
			}
		case word == "dumb-init":
			cfg.Session, cfg.StopSelfOnTSTP, cfg.TermGroup, cfg.LingerGiven = true, true, true, true
		default:
			cfg.Env = append(cfg.Env, word)
		}
	}
	return cfg
}

// setFlag sets the field of a flag, which has the flag's name or a tag with the name.
func setFlag(cfg *plan.Config, name, value string) (err error) {
	fields := reflect.ValueOf(cfg).Elem()
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		if field.Tag.Get("name") != name && !strings.EqualFold(field.Name, strings.ReplaceAll(name, "-", "")) {
			continue
		}
		cfg.DelayGiven = cfg.DelayGiven || name == "delay"
		cfg.LingerGiven = cfg.LingerGiven || name == "linger"
		switch at := fields.Field(i).Addr().Interface().(type) {
		case *time.Duration:
			*at, err = time.ParseDuration(value)
		case *bool:
			*at = true
		case *string:
			*at = value
		case *stop.Reason:
			*at = stop.Reason(value)
		case *plan.Level:
			*at = map[string]plan.Level{"error": plan.Error, "warn": plan.Warn, "info": plan.Info, "debug": plan.Debug}[value]
		case *stop.Schedule:
			*at, err = stop.ParseSchedule(value)
		case *check.Mode:
			*at = map[string]check.Mode{"pass": check.Pass, "fail": check.Fail, "close": check.Close}[value]
		case **check.Spec:
			*at, err = check.Parse(value)
		case **check.Request:
			*at, err = check.ParseRequest("GET " + value)
		case *[]string:
			*at = append(*at, value)
		case *plan.OnStop:
			s, noSignal := sig.Parse(value)
			switch {
			case check.IsRequest(value):
				at.Request, err = check.ParseRequest(value)
			case noSignal == nil && s.String() == value:
				at.Signal = s
			default:
				at.Command = []string{value}
			}
		case *[]uint16:
			var port uint16
			_, err = fmt.Sscan(value, &port)
			*at = append(*at, port)
		case *[]sig.Rewrite:
			return add(at, value, sig.ParseRewrite)
		case *[]sig.Signal:
			return add(at, value, sig.Parse)
		case *[]preset.ExitCode:
			var m preset.ExitCode
			value, m.Stopped = strings.CutPrefix(value, "stop:")
			_, err = fmt.Sscanf(value, "%d:%d", &m.From, &m.To)
			*at = append(*at, m)
		default:
			return fmt.Errorf("a field of type %T", at)
		}
		return err
	}
	return fmt.Errorf("no such flag")
}

func add[T any](list *[]T, value string, parse func(string) (T, error)) error {
	one, err := parse(value)
	*list = append(*list, one)
	return err
}
