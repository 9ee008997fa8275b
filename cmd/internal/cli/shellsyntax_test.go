package cli

import (
	"strings"
	"testing"
)

// TestShellSyntax: shellSyntax finds operators and expansions of shells outside of quotes.
func TestShellSyntax(t *testing.T) {
	for text, want := range map[string]string{
		"deregister && sleep 5":          "&&",
		"a || b":                         "||",
		"a | tee /log":                   "|",
		"a; b":                           "a;",
		"a ; b":                          ";",
		"a &":                            "&",
		"a > /proc/1/fd/2":               ">",
		"a >/dev/null":                   ">/dev/null",
		"a 2>&1":                         "2>&1",
		"a &>/dev/null":                  "&>/dev/null",
		"a < b":                          "<",
		"kill -USR1 $LAMEDUCK_PID":       "$LAMEDUCK_PID",
		"curl http://$HOST/x":            "$HOST",
		"a ${X:-y}":                      "${X:-y}",
		"a $(hostname)":                  "$(hostname)",
		"a `hostname`":                   "`hostname`",
		"sh -c echo $X":                  "$X",
		"sh -c 'a && b; c > $X'":         "",
		`sh -c "a && b; c > $X"`:         "",
		`find /x -exec rm {} \;`:         "",
		`find /x -exec rm {} ';'`:        "",
		`echo \$X`:                       "",
		"curl http://x/?a=1&b=2;c=3":     "",
		"grep a|b":                       "",
		"curl -d {} http://localhost/x$": "",
		"echo 5$ %":                      "",
		`echo 'it'"'"'s' \'`:             "",
		"":                               "",
	} {
		if got := shellSyntax(text); got != want {
			t.Errorf("%s: found %q, want %q", text, got, want)
		}
	}
}

// TestNoShell: an --on-stop with syntax of a shell is an error with the syntax.
func TestNoShell(t *testing.T) {
	line, err := ParseRun([]string{"--on-stop=a && b", "x"}, nil)
	if err == nil {
		_, err = line.Config()
	}
	const want = "--on-stop='a && b': no shell runs the command, so && stays as it is: give sh -c 'COMMAND', or quote &&"
	if err == nil || strings.ReplaceAll(err.Error(), `"`, "'") != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
