package cli

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// modelOf returns kong's flags of a command, by their names.
func modelOf(t testing.TB, command string) map[string]*kong.Flag {
	t.Helper()
	k := newParser(new(Line))
	flags := map[string]*kong.Flag{}
	for _, f := range flagsOf(command, k.Model.Flags) {
		flags[f.Name] = f
	}
	return flags
}

// splitCall splits a call into flags and variables.
func splitCall(t *testing.T, call string) (args, env []string) {
	t.Helper()
	words, err := SplitWords(call)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range words {
		if word[0] != '-' && strings.Contains(word, "=") {
			env = append(env, word)
		} else {
			args = append(args, word)
		}
	}
	return args, env
}

// rows returns the cells of a table's rows. Indented lines continue a row.
func rows(table string) (list [][]string) {
	for line := range strings.Lines(strings.ReplaceAll(table, "\n    ", " ")) {
		cells := strings.Split(line, "|")
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(cell)
		}
		if len(cells) > 1 {
			list = append(list, cells)
		}
	}
	return list
}

// configOf returns the configuration of a command line and an environment.
func configOf(args, env []string) (shim.Config, error) {
	line, err := ParseRun(args, env)
	if err != nil {
		return shim.Config{}, err
	}
	return line.Config()
}

//go:embed testdata/configs.txt
var configs string

// TestConfig: every flag in every form, variables, and mistakes.
func TestConfig(t *testing.T) {
	plain := reflect.ValueOf(shim.Config{Command: []string{"x"}, Level: shim.Warn})
	for _, cells := range rows(configs) {
		args, env := splitCall(t, cells[0])
		for _, end := range [][]string{{"x"}, {"--", "x"}} {
			cfg, err := configOf(append(slices.Clone(args), end...), env)
			got := fmt.Sprint("error: ", err)
			if err == nil {
				var fields []string
				cfg.Texts = nil // for messages: see refused.txt of cmd/lameduck
				for i := range plain.NumField() {
					if field := reflect.ValueOf(cfg).Field(i); fmt.Sprint(field) != fmt.Sprint(plain.Field(i)) {
						fields = append(fields, fmt.Sprintf("%s=%v", plain.Type().Field(i).Name, field))
					}
				}
				got = strings.Join(fields, " ")
			}
			if got != cells[1] && (err == nil || end[0] == "x") {
				t.Errorf("%s\n got %s\nwant %s", cells[0], got, cells[1])
			}
		}
	}
}

// TestOddNames: a variable may have any bytes in its name, and need not have a value.
func TestOddNames(t *testing.T) {
	odd, err := ParseRun([]string{"x"}, []string{"LAMEDUCK_A\nB=1"})
	if err != nil || len(odd.Unknown) != 1 || strings.Contains(odd.Unknown[0].Error(), "\n") {
		t.Errorf("a name with a newline: warnings %q, error %v", odd.Unknown, err)
	}
	env := []string{"A=1", "B", "LAMEDUCK_DELAY", "LAMEDUCK_B"}
	if cfg, err := configOf([]string{"x"}, env); err != nil || !slices.Equal(cfg.Env, env) || cfg.Delay != 0 {
		t.Errorf("without values: %v, %v", cfg.Env, err)
	}
}

// TestEnvTrimmed: blanks and newlines around the value of a variable do not count. Alone, they
// count as an empty variable.
func TestEnvTrimmed(t *testing.T) {
	read := func(variable string) string {
		cfg, err := configOf([]string{"x"}, []string{variable})
		if err != nil || len(cfg.Warnings) > 0 {
			t.Errorf("%q: %v, warnings %q", variable, err, cfg.Warnings)
		}
		cfg.Env = nil
		return fmt.Sprintf("%+v", cfg)
	}
	plain := read("LAMEDUCK_REWRITE=TERM:USR1")
	for _, value := range []string{"TERM:USR1\n", "TERM:USR1 ", " TERM:USR1\r\n", "\tTERM:USR1"} {
		if got := read("LAMEDUCK_REWRITE=" + value); got != plain {
			t.Errorf("%q: %s, want %s", value, got, plain)
		}
	}
	if got, want := read("LAMEDUCK_REWRITE= \n"), read("A=B"); got != want {
		t.Errorf("blanks: %s, want %s", got, want)
	}
}

// linksOf returns the variables that the kubelet makes for a Service with the ports 80
// (http) and 53/UDP, by the Service's name in variables.
func linksOf(name string) (env []string) {
	for _, entry := range []string{
		"_SERVICE_HOST=10.0.0.1", "_SERVICE_PORT=80", "_SERVICE_PORT_HTTP=80", "_SERVICE_PORT_MY_DNS=53",
		"_PORT=tcp://10.0.0.1:80",
		"_PORT_80_TCP=tcp://10.0.0.1:80", "_PORT_80_TCP_PROTO=tcp", "_PORT_80_TCP_PORT=80", "_PORT_80_TCP_ADDR=10.0.0.1",
		"_PORT_53_UDP=udp://[fd00::1]:53", "_PORT_53_UDP_PROTO=udp", "_PORT_53_UDP_PORT=53", "_PORT_53_UDP_ADDR=fd00::1",
	} {
		env = append(env, name+entry)
	}
	return env
}

// TestServiceLinks: the variables of a Service, even a variable with the name of a flag's
// variable, are no warning and no value, and the command gets all variables.
func TestServiceLinks(t *testing.T) {
	for _, service := range []string{"LAMEDUCK", "LAMEDUCK_WEB", "LAMEDUCK_COUNT", "LAMEDUCK_IGNORE", "LAMEDUCK_DELAY", "LAMEDUCK_UNTIL_V2", "LAMEDUCK_SERVICE_HOST", "LAMEDUCKS"} {
		env := linksOf(service)
		reversed := slices.Clone(env)
		slices.Reverse(reversed)
		for _, order := range [][]string{env, reversed} {
			got, err := configOf([]string{"-u", "quiet", "x"}, order)
			if err != nil || len(got.Warnings) > 0 || len(got.CountPorts)+len(got.IgnorePorts) > 0 || !slices.Equal(got.Env, order) {
				t.Errorf("%s: %v, warnings %q, ports %v %v, the command gets %q", service, err, got.Warnings, got.CountPorts, got.IgnorePorts, got.Env)
			}
		}
	}
}

//go:embed testdata/values.txt
var badValues string

// oneLine checks that an error is one line and contains all of says.
func oneLine(t *testing.T, of string, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s is no error", of)
		return
	}
	for _, part := range append(says, "") {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q; want one line with %q in it", of, err, part)
		}
	}
}

// TestBadValues: a bad value is one line, with the flag, its variable and the remedy. Each flag
// has bad values, or needs none.
func TestBadValues(t *testing.T) {
	flags := modelOf(t, "run")
	seen := map[string]bool{}
	for _, cells := range rows(badValues) {
		name, right := cells[0], cells[1]
		values, err := SplitWords(cells[2])
		if err != nil {
			t.Fatal(err)
		}
		seen[name] = true
		for _, value := range values {
			variable := Variable(flags[name])
			flagged, set := "--"+name+"="+value, variable+"="+value
			says := "--" + name + "=" + shim.Quote(value) + " (" + variable + "): "
			for _, c := range [][2][]string{{{flagged, "-d1", "x"}}, {{"-d1", "x"}, {set}}} {
				if name != "delay" || c[1] == nil {
					_, err := configOf(c[0], c[1])
					oneLine(t, fmt.Sprint(c), err, says, right)
				}
			}
		}
	}
	for name, flag := range flags {
		if Variable(flag) != "" && !seen[name] {
			t.Errorf("--%s has no bad values", name)
		}
	}
}

// TestWords: blanks, quotes and backslashes as in sh(1); no expansion.
func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"a":                    {"a"},
		"  a  b\tc\n":          {"a", "b", "c"},
		`a 'b c' "d e"`:        {"a", "b c", "d e"},
		`a''b ""`:              {"ab", ""},
		`a\ b \'c\" \\`:        {"a b", `'c"`, `\`},
		`"a\"b\\c\d\$e"`:       {`a"b\c\d$e`},
		`'a\b"c'`:              {`a\b"c`},
		`curl -X PUT "$URL/*"`: {"curl", "-X", "PUT", "$URL/*"},
		"ä 'ö ü'":              {"ä", "ö ü"},
		"/bin/../bin/true x/y": {"/bin/true", "x/y"},
	} {
		if got, err := parseCommand(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}
