package shim

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// readConfig reads flags, and "dumb-init", which stands for the fields that only dumb-init's
// flags set; other words are the environment. The values are plain: cmd/internal/cli parses
// those of users.
func readConfig(t *testing.T, words []string) Config {
	t.Helper()
	cfg := Config{Level: Warn}
	for _, word := range words {
		flag, isFlag := strings.CutPrefix(word, "--")
		switch name, value, _ := strings.Cut(flag, "="); {
		case isFlag:
			if err := setFlag(&cfg, name, value); err != nil {
				t.Fatalf("%s: %v", word, err)
			}
		case word == "dumb-init":
			cfg.Session, cfg.StopSelfOnTSTP, cfg.TermGroup = true, true, true
		default:
			cfg.Env = append(cfg.Env, word)
		}
	}
	return cfg
}

// setFlag sets the field of a flag, which has the flag's name or a tag with the name.
func setFlag(cfg *Config, name, value string) (err error) {
	fields := reflect.ValueOf(cfg).Elem()
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		if field.Tag.Get("name") != name && !strings.EqualFold(field.Name, strings.ReplaceAll(name, "-", "")) {
			continue
		}
		cfg.DelayGiven = cfg.DelayGiven || name == "delay"
		switch at := fields.Field(i).Addr().Interface().(type) {
		case *time.Duration:
			*at, err = time.ParseDuration(value)
		case *bool:
			*at = true
		case *string:
			*at = value
		case *Condition:
			*at = Condition(value)
		case *Level:
			*at = map[string]Level{"error": Error, "warn": Warn, "info": Info, "debug": Debug}[value]
		case *Schedule:
			*at, err = ParseSchedule(value)
		case *HealthMode:
			*at, err = ParseHealthMode(value)
		case **HealthSpec:
			*at = new(HealthSpec)
			**at, err = ParseHealth(value)
		case *[]string:
			*at = append(*at, value)
		case *[]uint16:
			var port uint16
			_, err = fmt.Sscan(value, &port)
			*at = append(*at, port)
		case *[]Rewrite:
			return add(at, value, ParseRewrite)
		case *[]Signal:
			return add(at, value, ParseSignal)
		case *[]ExitMap:
			var m ExitMap
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
