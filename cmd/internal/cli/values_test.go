package cli

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// badValues are values that are refused from a flag and from its variable, and a part of the
// error, the remedy. Empty values are in TestRefused: variables may be empty.
var badValues = map[string]struct {
	values []string
	right  string
}{
	"delay":               {[]string{"x", "-1", "-1s", "1x", "1d", "1e3", "0x5", "inf", "NaN", "1,5", "1:30", "5 s", "2h 3m", "99999999999", "1e400"}, "1m30s"},
	"grace-period":        {[]string{"x", "-1", "1d", "inf"}, "1m30s"},
	"linger":              {[]string{"x", "-1", "1d", "inf"}, "1m30s"},
	"rewrite":             {[]string{"TERM", "TERM=USR1", "TERM-USR1", "15"}, "FROM:TO"},
	"stop-signal":         {[]string{"x", "0", "65", "-1", "RTMIN+31", "TERM,", ",TERM", "TERM,,INT", "TERM INT", "TERM:INT"}, "1 to 64"},
	"parent-death-signal": {[]string{"x", "0", "65", "-1", "TERM,INT"}, "1 to 64"},
	"exit-code":           {[]string{"x", "256", "-1", "1:256", ":1", "1:", "1:x", "1:2:3", "1.5", "143,", "TERM"}, "FROM:TO"},
	"until":               {[]string{"x", "QUIET", "quiet,drained", "gone"}, "elapsed, settled, quiet or drained"},
	"quiet-for":           {[]string{"x", "-1", "1d", "0"}, "500ms"},
	"max-silence":         {[]string{"x", "-1", "1d", "0"}, "500ms"},
	"max-delay":           {[]string{"x", "-1", "1d", "0"}, "500ms"},
	"count-port":          {[]string{"x", "0", "-1", "65536", "80,", "80-90", "http"}, "1 to 65535"},
	"ignore-port":         {[]string{"x", "0", "-1", "65536", "80,", "80-90", "http"}, "1 to 65535"},
	"ignore-peer":         {[]string{"x", "10.0.0", "10.0.0.0/33", "10.0.0.1:80", "fe80::1%eth0", "::ffff:10.0.0.0/104", "10.0.0.1,"}, "10.0.0.0/8"},
	"termination-log":     {nil, ""},
	"wait-gone":           {nil, ""},
	"alive-file":          {nil, ""},
	"preset":              {[]string{"x", "ngnix", "none", "nginx,haproxy"}, "preset"},
	"health":              {[]string{"x", "9000", ":x", ":0", ":9000=", ":9000=:9000", ":9000=:8080=:7070", "localhost:80"}, ":"},
	"health-during":       {[]string{"x", "PASS", "pass,fail"}, "fail"},
	"on-stop":             {[]string{" ", "'a", `a"b`, `a\`}, ""},
	"stop-schedule":       {[]string{"x", "TERM/", "/TERM", "TERM/x/KILL", "TERM/15/65x", "TERM 5", "-65", "0", "forever", "forever/5", "5/5", "TERM/-5s"}, ""},
	"kill-after":          {[]string{"x", "-1", "1d", "0"}, "500ms"},
	"log-format":          {[]string{"x", "JSON", "text,json"}, "text or json"},
	"log-level":           {[]string{"x", "WARN", "warning", "2", "warn,info"}, "error, warn, info or debug"},
}

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

func TestBadValues(t *testing.T) {
	try := func(args, env []string) error {
		line, err := ParseRun(args, env)
		if err == nil {
			_, err = line.Config()
		}
		return err
	}
	flags := modelOf(t, "run")
	for flag, bad := range badValues {
		for _, value := range bad.values {
			variable := Variable(flags[flag])
			flagged, set := "--"+flag+"="+value, variable+"="+value
			says := "--" + flag + "=" + shim.Quote(value) + " (" + variable + "): "
			oneLine(t, flagged, try([]string{flagged, "x"}, nil), says, bad.right)
			if strings.TrimSpace(value) == "" { // counts as unset
				continue
			}
			oneLine(t, set, try([]string{"x"}, []string{set}), says, bad.right)
		}
	}
	for name, flag := range flags {
		if Variable(flag) == "" {
			continue
		}
		if _, ok := badValues[name]; ok == flag.IsBool() {
			t.Errorf("--%s has no bad values here, or needs none", name)
		}
		if flag.IsBool() {
			says := "--" + name + "=maybe (" + Variable(flag) + `): invalid value "maybe": give true or false`
			oneLine(t, name, try([]string{"--" + name + "=maybe", "x"}, nil), says)
			oneLine(t, name, try([]string{"x"}, []string{Variable(flag) + "=maybe"}), says)
		}
	}
	for _, value := range []string{"KILL:TERM", "STOP:0", "9:15"} { // signals that cannot be caught
		oneLine(t, value, try([]string{"-r", value, "x"}, nil), "--rewrite="+value, "never reaches lameduck")
	}
	for _, value := range []string{"FOO:TERM", "TERM:FOO", "TERM:65", "TERM:USR1,FOO:HUP", "0:TERM", "TERM:", ":TERM", "TERM:USR1:HUP"} {
		oneLine(t, value, try([]string{"-r", value, "x"}, nil), "--rewrite="+value+" (LAMEDUCK_REWRITE): ", "1 to 64")
	}
	for _, value := range []string{"0", "0.5", "999ms"} {
		oneLine(t, value, try([]string{"-d", "1", "--grace-period", value, "x"}, nil), "--grace-period="+value+" (LAMEDUCK_GRACE_PERIOD): ", "at least 1s")
	}
}

// hints are mistakes of newcomers, with the end of the error, the remedy.
var hints = map[string]string{
	"--stop-signal=SIGQIT":          "; did you mean QUIT?",
	"--parent-death-signal=SIGTERN": "; did you mean TERM?",
	"--on-stop='a' '":               ": close the quote",
	"--until=Quiet":                 "give elapsed, settled, quiet or drained",
	"--preset=haproxxy":             "did you mean haproxy? (lameduck presets lists them)",
	"--preset=ngnix":                "did you mean nginx? (lameduck presets lists them)",
	"--preset=rails":                "give auto, haproxy, nginx, ",
	"--preset=nginx,php-fpm":        "give auto, haproxy, nginx, ",
	"--termination-log=":            "give a path",
	"--exit-code=143=0":             "as in 143 or 143:0",
	"--ignore-peer=10.0.0.1:80":     "give an address (10.0.0.1) or a range (10.0.0.0/8, fd00::/8)",
	"--health=9000":                 ":9000",
}

// TestHints: the error about a value has the remedy, in a single line.
func TestHints(t *testing.T) {
	for arg, want := range hints {
		line, err := ParseRun([]string{"-u", "quiet", "--health=:1", arg, "x"}, nil)
		if err == nil {
			_, err = line.Config()
		}
		oneLine(t, arg, err, want)
	}
}

// TestSchedule: start-stop-daemon(8)'s form, in every spelling.
func TestSchedule(t *testing.T) {
	sends := func(s shim.Signal) shim.Step { return shim.Step{Signal: s} }
	waits := func(d time.Duration) shim.Step { return shim.Step{Wait: d * time.Second} }
	forever, stop := shim.Step{Forever: true}, shim.Step{StopSignal: true}
	for text, want := range map[string]shim.Schedule{
		"TERM":                    {sends(15)},
		"-TERM":                   {sends(15)},
		"-15":                     {sends(15)},
		"-SIGTERM":                {sends(15)},
		"sigterm":                 {sends(15)},
		"USR1/30s/TERM/5s/KILL":   {sends(10), waits(30), sends(15), waits(5), sends(9)},
		"-10/30/-15/5/-9":         {sends(10), waits(30), sends(15), waits(5), sends(9)},
		"QUIT/1m/forever/TERM/1s": {sends(3), waits(60), forever, sends(15), waits(1)},
		"RTMIN+3/90":              {sends(37), waits(90)},
		"5/TERM":                  {waits(5), sends(15)},
		"30":                      {stop, waits(30), sends(9), waits(30)},
		"1m":                      {stop, waits(60), sends(9), waits(60)},
	} {
		if got, err := shim.ParseSchedule(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
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
