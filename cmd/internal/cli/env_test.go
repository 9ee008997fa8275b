package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// TestEnvFlags: a variable counts if its flag is not on the command line, and the command
// does not get the variable.
func TestEnvFlags(t *testing.T) {
	for _, c := range []struct {
		args, env string
		want      shim.Config
		rest      string
	}{
		{"", "A=1 B=", shim.Config{}, "A=1 B="},
		{"", "LAMEDUCK_DELAY=2 A=1", shim.Config{Delay: 2 * time.Second}, "A=1"},
		{"-d 3", "LAMEDUCK_DELAY=2", shim.Config{Delay: 3 * time.Second}, ""},
		{"-d 0", "LAMEDUCK_DELAY=2", shim.Config{}, ""},
		{"-d 3", "LAMEDUCK_DELAY=nonsense", shim.Config{Delay: 3 * time.Second}, ""},
		{"", "A=1 LAMEDUCK_DELAY= B=2", shim.Config{}, "A=1 B=2"},
		{"", "A=1 A=2 B A=1 LAMEDUCK_DELAY LAMEDUCK_B", shim.Config{}, "A=1 A=2 B A=1 LAMEDUCK_DELAY LAMEDUCK_B"},
		{"", "LAMEDUCK_COUNT_PORT=tcp://10.0.0.1:80", shim.Config{}, "LAMEDUCK_COUNT_PORT=tcp://10.0.0.1:80"},
		{"", "LAMEDUCK_DELAY=2 LAMEDUCK_DELAY=3", shim.Config{Delay: 2 * time.Second}, ""},
		{"", "LAMEDUCK_DELAY=1m30s LAMEDUCK_GRACE_PERIOD=120", shim.Config{Delay: 90 * time.Second, GracePeriod: 2 * time.Minute}, ""},
		{"", "LAMEDUCK_REWRITE=TERM:USR1,HUP:0", shim.Config{Rewrites: []shim.Rewrite{{From: 15, To: 10}, {From: 1}}}, ""},
		{"-r INT:0", "LAMEDUCK_REWRITE=TERM:USR1", shim.Config{Rewrites: []shim.Rewrite{{From: 2}}}, ""},
		{"", "LAMEDUCK_STOP_SIGNAL=quit,28", shim.Config{StopSignals: []shim.Signal{3, 28}}, ""},
		{"", "LAMEDUCK_EXIT_CODE=143,130:2", shim.Config{ExitCodes: []shim.ExitMap{{From: 143}, {From: 130, To: 2}}}, ""},
		{"", "LAMEDUCK_LOG_LEVEL=warn", shim.Config{}, ""},
		{"", "LAMEDUCK_GROUP=true", shim.Config{Group: true}, ""},
		{"", "LAMEDUCK_GROUP= LAMEDUCK_SUBREAPER=", shim.Config{}, ""},
		{"", "LAMEDUCK_GROUP=0 LAMEDUCK_SUBREAPER=false", shim.Config{Subreaper: shim.No}, ""},
		{"-u quiet", "LAMEDUCK_IGNORE_PROBES=true", shim.Config{Until: shim.Quiet, Probes: shim.IgnoreProbes}, ""},
		{"-u quiet", "LAMEDUCK_IGNORE_PROBES=false", shim.Config{Until: shim.Quiet, Probes: shim.CountProbes}, ""},
		{"-u quiet", "LAMEDUCK_IGNORE_PROBES=", shim.Config{Until: shim.Quiet}, ""},
		{"-u quiet --no-ignore-probes", "LAMEDUCK_IGNORE_PROBES=true", shim.Config{Until: shim.Quiet, Probes: shim.CountProbes}, ""},
		{"-u quiet --ignore-probes", "LAMEDUCK_IGNORE_PROBES=false", shim.Config{Until: shim.Quiet, Probes: shim.IgnoreProbes}, ""},
		{"--group=false -s", "LAMEDUCK_GROUP=1 LAMEDUCK_SUBREAPER=0", shim.Config{Subreaper: shim.Yes}, ""},
		{"", "LAMEDUCK_LINGER=5 LAMEDUCK_PARENT_DEATH_SIGNAL=sigterm", shim.Config{Linger: 5 * time.Second, ParentDeathSignal: 15}, ""},
		{"", "lameduck_delay=2 XLAMEDUCK_DELAY=2 LAMEDUCK=2", shim.Config{}, "lameduck_delay=2 XLAMEDUCK_DELAY=2 LAMEDUCK=2"},
		{"", "LAMEDUCK_PORT=tcp://10.0.0.1:80 LAMEDUCK_PORT_8080_TCP=x LAMEDUCK_PORT_8080_TCP_ADDR=x LAMEDUCK_SERVICE_HOST=x LAMEDUCK_SERVICE_PORT=80",
			shim.Config{}, "LAMEDUCK_PORT=tcp://10.0.0.1:80 LAMEDUCK_PORT_8080_TCP=x LAMEDUCK_PORT_8080_TCP_ADDR=x LAMEDUCK_SERVICE_HOST=x LAMEDUCK_SERVICE_PORT=80"},
	} {
		c.want.Command, c.want.Level = []string{"x"}, shim.Warn
		got, err := configOf(c.args+" -- x", c.env)
		if rest := strings.Join(got.Env, " "); rest != c.rest {
			t.Errorf("%s: the command gets %q, want %q", c.env, rest, c.rest)
		}
		got.Env = nil
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s:\n got %+v, %v\nwant %+v", c.env, c.args, got, err, c.want)
		}
	}
	if got, err := configOf("x", "LAMEDUCK_LOG_LEVEL=debug"); err != nil || got.Level != shim.Debug {
		t.Errorf("LAMEDUCK_LOG_LEVEL=debug is %v, %v", got.Level, err)
	}
}

// TestEnvTrimmed: blanks and newlines around the value of a variable do not count, for any
// flag. Alone, they count as an empty variable.
func TestEnvTrimmed(t *testing.T) {
	values := map[string]string{"delay": "2", "until": "quiet", "grace-period": "60", "max-delay": "9", "wait-gone": "/x", "on-stop": "true", "quiet-for": "1", "max-silence": "9",
		"count-port": "80", "ignore-port": "81", "ignore-peer": "::1", "rewrite": "TERM:USR1", "stop-signal": "QUIT", "preset": "auto", "stop-schedule": "TERM", "kill-after": "5", "linger": "1",
		"exit-code": "143", "log-level": "debug", "log-format": "json", "termination-log": "none", "health": ":9000", "health-during": "pass", "alive-file": "/y", "parent-death-signal": "TERM"}
	beside := []string{"LAMEDUCK_UNTIL=quiet", "LAMEDUCK_HEALTH=:9000"}
	read := func(variable string) shim.Config {
		line, err := ParseRun([]string{"x"}, append([]string{variable}, beside...))
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := line.Config()
		if err != nil || len(cfg.Warnings) > 0 {
			t.Errorf("%q: %v, warnings %q", variable, err, cfg.Warnings)
		}
		cfg.Env = nil
		return cfg
	}
	for name, flag := range modelOf(t, "run") {
		variable := Variable(flag)
		if variable == "" {
			continue
		}
		value := values[name]
		if flag.IsBool() {
			value = "true"
		}
		if value == "" {
			t.Errorf("no value for --%s", name)
		}
		plain := read(variable + "=" + value)
		for _, odd := range []string{value + "\n", value + " ", " " + value + "\r\n", "\t" + value} {
			if got := read(variable + "=" + odd); !reflect.DeepEqual(got, plain) {
				t.Errorf("%s=%q: %+v, want %+v", variable, odd, got, plain)
			}
		}
		if name == "until" || name == "health" { // beside has both
			continue
		}
		if got, want := read(variable+"= \n"), read("A=B"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s of blanks: %+v, want %+v", variable, got, want)
		}
	}
}

// TestHoldTurnedOff: a variable turns the hold off beside flags about the hold, which are
// then warnings.
func TestHoldTurnedOff(t *testing.T) {
	for _, env := range []string{"LAMEDUCK_UNTIL=elapsed", "LAMEDUCK_DELAY=0", "LAMEDUCK_UNTIL=elapsed LAMEDUCK_DELAY=0"} {
		cfg, err := configOf("--grace-period=60 --quiet-for=2 --max-delay=20 --count-port=80 x", env)
		if err != nil || len(cfg.Warnings) != 4 || cfg.Holds() || cfg.GracePeriod != time.Minute || cfg.MaxDelay != 0 {
			t.Errorf("%s: %+v, %v", env, cfg, err)
		}
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", env, err)
		}
	}
	if cfg, err := configOf("--quiet-for=2 -d 5 x", "LAMEDUCK_UNTIL=elapsed"); err != nil || len(cfg.Warnings) != 1 || cfg.Delay != 5*time.Second {
		t.Errorf("with a delay: %+v, %v", cfg, err)
	}
	for _, env := range []string{"", "LAMEDUCK_UNTIL=", "LAMEDUCK_LINGER=0", "LAMEDUCK_DELAY=5"} {
		_, err := configOf("--quiet-for=2 x", env)
		oneLine(t, env, err, "--quiet-for=2 (LAMEDUCK_QUIET_FOR) has no effect")
	}
}

// TestEnvWarnings: an unknown variable is a warning with the nearest name, and the command
// gets it. A variable without effect is a warning, too.
func TestEnvWarnings(t *testing.T) {
	for env, says := range map[string][]string{
		"LAMEDUCK_DELAI=2":           {"LAMEDUCK_DELAI", "did you mean LAMEDUCK_DELAY?"},
		"LAMEDUCK_GRACEPERIOD=2":     {"LAMEDUCK_GRACEPERIOD", "did you mean LAMEDUCK_GRACE_PERIOD?"},
		"LAMEDUCK_REWRITES=":         {"LAMEDUCK_REWRITES", "did you mean LAMEDUCK_REWRITE?"},
		"LAMEDUCK_PORTS=2":           {"LAMEDUCK_PORTS"},
		"LAMEDUCK_SERVICE=2":         {"LAMEDUCK_SERVICE"},
		"LAMEDUCK_VERSION=1":         {"unknown variable LAMEDUCK_VERSION: lameduck --help-all lists the variables"},
		"LAMEDUCK_IMAGE=foo":         {"unknown variable LAMEDUCK_IMAGE: lameduck --help-all lists the variables"},
		"LAMEDUCK_=1":                {"LAMEDUCK_: "},
		"LAMEDUCK_GRACE_PERIOD=60":   {"LAMEDUCK_GRACE_PERIOD", "no effect", "--delay"},
		"LAMEDUCK_IGNORE_PROBES=no":  {"--ignore-probes=no (LAMEDUCK_IGNORE_PROBES) has no effect", "--until"},
		"LAMEDUCK_COMMAND=rm":        {"LAMEDUCK_COMMAND"},
		"LAMEDUCK_LOG__LEVEL=silent": {"LAMEDUCK_LOG__LEVEL", "did you mean LAMEDUCK_LOG_LEVEL?"},
	} {
		cfg, err := configOf("x", env)
		if err != nil || len(cfg.Warnings) != 1 {
			t.Errorf("%s: warnings %q, error %v", env, cfg.Warnings, err)
			continue
		}
		for _, part := range says {
			if !strings.Contains(cfg.Warnings[0], part) {
				t.Errorf("%s: %q; want %q in it", env, cfg.Warnings[0], part)
			}
		}
		if stays := !strings.Contains(cfg.Warnings[0], "no effect"); stays != slices.Equal(cfg.Env, []string{env}) {
			t.Errorf("%s: the command gets %q", env, cfg.Env)
		}
	}
	odd, err := ParseRun([]string{"x"}, []string{"LAMEDUCK_A\nB=1"})
	if err != nil || len(odd.Unknown) != 1 || strings.Contains(odd.Unknown[0].String(), "\n") {
		t.Errorf("a name with a newline: warnings %q, error %v", odd.Unknown, err)
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
		for _, order := range [][]string{env, reversed(env)} {
			got, err := configOf("-u quiet x", strings.Join(order, " "))
			if err != nil || len(got.Warnings) > 0 || len(got.CountPorts)+len(got.IgnorePorts) > 0 || !slices.Equal(got.Env, order) {
				t.Errorf("%s: %v, warnings %q, ports %v %v, the command gets %q", service, err, got.Warnings, got.CountPorts, got.IgnorePorts, got.Env)
			}
		}
	}
}

// TestServiceLinksAside: beside the variables of a Service the user's own variables count,
// and mistyped variables are a warning.
func TestServiceLinksAside(t *testing.T) {
	env := strings.Join(linksOf("LAMEDUCK_COUNT")[:3], " ")
	got, err := configOf("-u quiet x", env+" LAMEDUCK_COUNT_PORT=8080") // the pod's own wins over the kubelet's
	if err != nil || len(got.Warnings) > 0 || !slices.Equal(got.CountPorts, []uint16{8080}) {
		t.Errorf("LAMEDUCK_COUNT_PORT=8080: %v, warnings %q, ports %v", err, got.Warnings, got.CountPorts)
	}
	for _, entry := range []string{"LAMEDUCK_COUNT_PORTS=80", "LAMEDUCK_COUNT_SERVICE=x", "LAMEDUCK_WEB_SERVICE_PORT=80"} {
		if got, err := configOf("-u quiet x", env+" "+entry); err != nil || len(got.Warnings) != 1 {
			t.Errorf("%s: %v, warnings %q", entry, err, got.Warnings)
		}
	}
	if got, err := configOf("-u quiet x", "LAMEDUCK_WEB_PORT=tcp://10.0.0.1:80"); err != nil || len(got.Warnings) > 0 {
		t.Errorf("an address alone: %v, warnings %q", err, got.Warnings)
	}
}

func reversed(list []string) []string {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}
