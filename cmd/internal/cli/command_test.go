package cli

import (
	"strings"
	"testing"
)

// TestCommandHint: the hint about a command that does not exist. The words of a
// command are separated by |.
func TestCommandHint(t *testing.T) {
	for command, want := range map[string]string{
		"until=quiet|nginx":          "did you mean --until=quiet?",
		"delay=10|nginx":             "did you mean --delay=10?",
		"LAMEDUCK_UNTIL=quiet|nginx": "did you mean --until=quiet?",
		"\u2014until=quiet|nginx":    "did you mean --until=quiet?",
		"\u2013\u2013until|quiet":    "did you mean --until?",
		"--until=quiet|nginx":        "give --until=quiet before the --, which ends the flags",
		"hold":                       "for the subcommand, give hold as the first word, before any flag",
		"presets|nginx":              "for the subcommand, give presets as the first word, before any flag",
		"preset|nginx":               "did you mean lameduck presets?",
		"instal|/x":                  "did you mean lameduck install?",
		"help":                       "did you mean lameduck --help?",
		"explain|nginx":              "did you mean lameduck --explain?",
		"exec|nginx":                 "leave exec out: lameduck runs the program that follows the flags",
		"run|nginx":                  "leave run out: lameduck runs the program that follows the flags",
		"cd|/app|&&|nginx":           "cd is a word of the shell: give sh -c 'cd ...; exec PROGRAM'",
		"nginx -g 'daemon off;'":     `did you mean several words, ["nginx", "-g", "daemon off;"]?`,
		"60|nginx":                   "did you mean --grace-period=60 or --delay=60?",
		"run":                        "",
		"7z":                         "",
		"group":                      "",
		"health":                     "",
		"gold":                       "",
		"x=y|nginx":                  "",
		"nginx":                      "",
		"":                           "",
		"-x":                         "",
		"it's":                       "",
	} {
		if got := CommandHint(strings.Split(command, "|")); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
