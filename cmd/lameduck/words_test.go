package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// TestSchedule: start-stop-daemon's form, in every way that it may be written.
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

// TestWords: blanks, quotes and backslashes as sh(1) takes them; no expansion.
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
		if got, err := parseWords(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}
