package stop

import (
	"strings"
	"testing"
)

func TestParseSchedule(t *testing.T) {
	for text, want := range map[string]string{
		"TERM":                   "TERM",
		"USR1/30/TERM/5s/KILL":   "USR1/30s/TERM/5s/KILL",
		"-USR1/30s/-15":          "USR1/30s/TERM",
		"rtmin+3/0.5/forever/-9": "RTMIN+3/500ms/forever/KILL",
		"TERM/1s/forever/KILL/1": "TERM/1s/forever/KILL/1s",
		"30":                     "30s",
		"15/TERM":                "15s/TERM", // a bare number is a duration
	} {
		got, err := ParseSchedule(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                          `invalid step "": give a signal`,
		"TERM/soon":                 `invalid step "soon": give a signal`,
		"TERM/-1s":                  `invalid step "-1s"`,
		"5/10":                      "the schedule sends no signal: give at least one",
		"TERM/forever/5s/forever/1": "forever is given twice",
		"KILL/5s/TERM":              "TERM comes after KILL, which ends the command: put KILL last",
	} {
		if got, err := ParseSchedule(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want error %q", text, got, err, want)
		}
	}
}
