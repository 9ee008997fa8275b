package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// configAs returns the configuration of a call by the name of another init.
func configAs(name string, env, args []string) (shim.Config, error) {
	d := dropinFor("/usr/bin/" + name)
	words, err := readDropin(d, args)
	if err != nil {
		return shim.Config{}, err
	}
	return inherit(d, words, env)
}

// dropinCalls are calls by the names of inits, and the configurations: only fields that
// differ from a call without flags and variables.
var dropinCalls = []struct {
	call string // variables, the name, flags
	want string // fields
}{
	{"tini", ""},
	{"tini-static", ""},
	{"docker-init", ""},
	{"tini -s", "Subreaper=1"},
	{"tini -g", "Group=true"},
	{"tini -sg", "Group=true Subreaper=1"},
	{"tini -w", "WarnReaped=true"},
	{"tini -v", "Level=2"},
	{"tini -vv", "Level=3"},
	{"tini -v -v -v", "Level=3"},
	{"tini -gvve7", "ExitCodes=[{7 0}] Group=true Level=3"},
	{"tini -p SIGTERM", "ParentDeathSignal=TERM"},
	{"tini -p SIGUSR1 -p SIGHUP", "ParentDeathSignal=HUP"},
	{"tini -e 7", "ExitCodes=[{7 0}]"},
	{"tini -e _7", "ExitCodes=[{7 0}]"},
	{"tini -e +7", "ExitCodes=[{7 0}]"},
	{"tini -e ", "ExitCodes=[{0 0}]"},
	{"tini -e 143 -e 255 -e 143", "ExitCodes=[{255 0} {143 0}]"},
	{"TINI_SUBREAPER= tini", "Subreaper=1"},
	{"TINI_SUBREAPER=0 docker-init", "Subreaper=1"},
	{"TINI_KILL_PROCESS_GROUP= tini", "Group=true"},
	{"TINI_KILL_PROCESS_GROUP=0 docker-init", "Group=true"},
	{"TINI_VERBOSITY=0 tini", "Level=0"},
	{"TINI_VERBOSITY= tini -vvv", "Level=0"},
	{"TINI_VERBOSITY=x tini -vvv", "Level=0"},
	{"TINI_VERBOSITY=-1 tini", "Level=0"},
	{"TINI_VERBOSITY=1 tini -vvv", ""},
	{"TINI_VERBOSITY=2 tini", "Level=2"},
	{"TINI_VERBOSITY=9 tini", "Level=3"},
	{"DUMB_INIT_SETSID=0 CATATONIT_DEBUG= tini", ""}, // variables of other inits

	{"dumb-init", ""},
	{"dumb-init -c", "Rewrites=[] SameGroup=true Session=false TermGroup=false"},
	{"dumb-init --single-child", "Rewrites=[] SameGroup=true Session=false TermGroup=false"},
	{"dumb-init --single", "Rewrites=[] SameGroup=true Session=false TermGroup=false"},
	{"DUMB_INIT_SETSID=0 dumb-init", "Rewrites=[] SameGroup=true Session=false TermGroup=false"},
	{"DUMB_INIT_SETSID=1 dumb-init", ""},
	{"DUMB_INIT_SETSID=00 dumb-init", ""},
	{"DUMB_INIT_SETSID= dumb-init", ""},
	{"dumb-init -v", "Level=3"},
	{"dumb-init --verbose", "Level=3"},
	{"dumb-init --verb", "Level=3"},
	{"DUMB_INIT_DEBUG=1 dumb-init", "Level=3"},
	{"DUMB_INIT_DEBUG=2 dumb-init", ""},
	{"DUMB_INIT_DEBUG= dumb-init", ""},
	{"dumb-init -c -r 15:3", "Rewrites=[TERM:QUIT] SameGroup=true Session=false TermGroup=false"},
	{"dumb-init -cr15:3", "Rewrites=[TERM:QUIT] SameGroup=true Session=false TermGroup=false"},
	{"dumb-init -r 15:3", "Rewrites=[TERM:QUIT TSTP:STOP TTIN:STOP TTOU:STOP]"},
	{"dumb-init --rewrite 15:3", "Rewrites=[TERM:QUIT TSTP:STOP TTIN:STOP TTOU:STOP]"},
	{"dumb-init --rewrite=15:3", "Rewrites=[TERM:QUIT TSTP:STOP TTIN:STOP TTOU:STOP]"},
	{"dumb-init --rew=15:3", "Rewrites=[TERM:QUIT TSTP:STOP TTIN:STOP TTOU:STOP]"},
	{"dumb-init --re 15:3 --rewrit 1:2", "Rewrites=[TERM:QUIT HUP:INT TSTP:STOP TTIN:STOP TTOU:STOP]"},
	{"dumb-init -r 15:3 -r 15:2", "Rewrites=[TERM:INT TSTP:STOP TTIN:STOP TTOU:STOP]"},
	{"dumb-init -r 20:10", "Rewrites=[TSTP:USR1 TTIN:STOP TTOU:STOP]"},
	{"dumb-init -r 20:0", "Rewrites=[TSTP:0 TTIN:STOP TTOU:STOP]"},
	{"dumb-init -r _15:_3", "Rewrites=[TERM:QUIT TSTP:STOP TTIN:STOP TTOU:STOP]"},
	{"dumb-init -r +15:+03", "Rewrites=[TERM:QUIT TSTP:STOP TTIN:STOP TTOU:STOP]"},
	{"dumb-init -r 15:3xyz", "Rewrites=[TERM:QUIT TSTP:STOP TTIN:STOP TTOU:STOP]"},
	{"dumb-init -r 15:3:4", "Rewrites=[TERM:QUIT TSTP:STOP TTIN:STOP TTOU:STOP]"},
	{"dumb-init -r TERM:SIGQUIT", "Rewrites=[TERM:QUIT TSTP:STOP TTIN:STOP TTOU:STOP]"},
	{"dumb-init -r 15:0", "Rewrites=[TERM:0 TSTP:STOP TTIN:STOP TTOU:STOP] TERMDropped=true"},
	{"dumb-init -r 15:0 -r 1:2 -r 15:1 -c", "Rewrites=[TERM:HUP HUP:INT] SameGroup=true Session=false TermGroup=false"},
	{"dumb-init -r 17:10 -r 9:1 -r 19:1", ""}, // these signals never arrive
	{"TINI_VERBOSITY=3 dumb-init", ""},

	{"catatonit", ""},
	{"podman-init", ""},
	{"catatonit -g", "Group=true"},
	{"CATATONIT_DEBUG= catatonit", "Level=3"},
	{"CATATONIT_DEBUG=0 podman-init", "Level=3"},

	// lameduck's own variables work as well, and a flag wins.
	{"LAMEDUCK_DELAY=3 docker-init", "Delay=3s"},
	{"LAMEDUCK_DELAY=3 catatonit -g", "Delay=3s Group=true"},
	{"LAMEDUCK_DELAY=3 LAMEDUCK_REWRITE=TERM:USR1 dumb-init -c", "Delay=3s Rewrites=[TERM:USR1] SameGroup=true Session=false TermGroup=false"},
	{"LAMEDUCK_REWRITE=TERM:USR1,HUP:0 dumb-init -c -r 15:3", "Rewrites=[TERM:QUIT HUP:0] SameGroup=true Session=false TermGroup=false"},
	{"LAMEDUCK_GROUP=true dumb-init -c", "Group=true Rewrites=[] Session=false TermGroup=false"}, // the variable needs a group
	{"LAMEDUCK_SUBREAPER=true dumb-init", "Subreaper=1"},
	{"LAMEDUCK_SUBREAPER=false dumb-init", ""},
	{"LAMEDUCK_LINGER=5 dumb-init", "Linger=5s Subreaper=0"}, // to wait for orphans
	{"LAMEDUCK_REWRITE=TSTP:0 dumb-init", "Rewrites=[TSTP:0 TTIN:STOP TTOU:STOP]"},
	{"LAMEDUCK_EXIT_CODE=7:1,8:1 tini -e 7", "ExitCodes=[{8 1} {7 0}]"},
	{"LAMEDUCK_LOG_LEVEL=debug tini -v", "Level=3"},
}

// TestDropinConfig: the configuration for each flag and variable of each init.
func TestDropinConfig(t *testing.T) {
	for _, c := range dropinCalls {
		env, name, args := splitCall(c.call)
		got, err := configAs(name, env, append(args, "--", "command"))
		plain, plainErr := configAs(name, nil, []string{"command"})
		if err != nil || plainErr != nil {
			t.Errorf("%s: %v, %v", c.call, err, plainErr)
			continue
		}
		for _, entry := range env { // other variables are for the command
			if ours := strings.HasPrefix(entry, cli.Prefix); slices.Contains(got.Env, entry) == ours {
				t.Errorf("%s: the command's environment is %v", c.call, got.Env)
			}
		}
		if !slices.Equal(got.Command, []string{"command"}) || differences(plain, got) != c.want {
			t.Errorf("%s: runs %q with %q, want %q", c.call, got.Command, differences(plain, got), c.want)
		}
	}
}

// splitCall splits a call into words. An underscore at the beginning of a word or number
// stands for a space.
func splitCall(call string) (env []string, name string, args []string) {
	words := strings.Split(call, " ")
	for strings.Contains(words[0], "=") {
		env, words = append(env, words[0]), words[1:]
	}
	for _, word := range words[1:] {
		args = append(args, strings.ReplaceAll(word, "_", " "))
	}
	return env, words[0], args
}

// differences returns the fields of b that differ from the fields of a.
func differences(a, b shim.Config) string {
	a.Env, b.Env = nil, nil
	var fields []string
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		if x, y := fmt.Sprint(va.Field(i)), fmt.Sprint(vb.Field(i)); x != y {
			fields = append(fields, va.Type().Field(i).Name+"="+y)
		}
	}
	slices.Sort(fields)
	return strings.Join(fields, " ")
}

// TestDropinDefaults: the configuration of a call without flags.
func TestDropinDefaults(t *testing.T) {
	for name, want := range map[string]string{
		"tini": "", "tini-static": "", "docker-init": "", "catatonit": "", "podman-init": "",
		"dumb-init": "ResetSignals=true Rewrites=[TSTP:STOP TTIN:STOP TTOU:STOP] Session=true StopSelfOnTSTP=true Subreaper=2 TermGroup=true",
	} {
		got, err := configAs(name, nil, []string{"command"})
		if plain := (shim.Config{Command: []string{"command"}, Level: shim.Warn}); err != nil || differences(plain, got) != want {
			t.Errorf("%s: %q, %v; want %q", name, differences(plain, got), err, want)
		}
	}
}

// TestDropinNames: the names of the inits, alone and as in upstream releases; other names
// with the same beginning are lameduck.
func TestDropinNames(t *testing.T) {
	for want, names := range map[string]string{
		"*main.tini": "tini tini-static docker-init tini-amd64 tini-static-amd64 tini-x86_64 tini-arm64 tini-static-arm64 tini-armel " +
			"tini-armhf tini-i386 tini-muslc-amd64 tini-static-muslc-amd64 tini-ppc64el tini-ppc64le tini-s390x tini-mips64el " +
			"tini-v0.19.0 tini_0.19.0-amd64 docker-init-28.0.1",
		"*main.dumbInit": "dumb-init dumb-init_1.2.5_x86_64 dumb-init_1.2.5_aarch64 dumb-init_1.2.5_ppc64le dumb-init_1.2.5_s390x " +
			"dumb-init_1.2.2_amd64 dumb-init_1.0.0",
		"*main.catatonit": "catatonit podman-init catatonit.x86_64 catatonit-0.2.1 catatonit.aarch64",
		"<nil>": "lameduck lameduck_1.2.5_x86_64 lameduck-amd64 tinily tini-helper tini.sh tini- tini--amd64 tini_ tini-amd64- tinix86_64 tini64 " +
			"tini-staticx my-tini init dumb-init.sh dumb-init_wrapper dumb-initd dumb catatonit-debug pause sh .tini",
	} {
		for _, name := range strings.Fields(names) {
			for _, path := range []string{name, "/usr/local/bin/" + name, "./" + name} {
				got := "<nil>"
				if d := dropinFor(path); d != nil {
					got = fmt.Sprintf("%T", d.flags)
				}
				if got != want {
					t.Errorf("%s is %s, want %s", path, got, want)
				}
			}
		}
	}
	if d := dropinFor(""); d != nil {
		t.Errorf("no name at all is %T", d.flags)
	}
}

// TestDropinRefuses: invalid flags of an init are errors.
func TestDropinRefuses(t *testing.T) {
	for _, call := range []string{
		"tini -x", "tini -e", "tini -e 256", "tini -e -1", "tini -e abc", "tini -e 7x", "tini -e 0x7",
		"tini -p", "tini -p ", "tini -p NOSUCH", "tini -p 65", "tini --frob", "tini -gx",
		"dumb-init -x", "dumb-init --frob", "dumb-init --ver", "dumb-init --verz", "dumb-init -r", "dumb-init --rewrite",
		"dumb-init -r ", "dumb-init -r herp", "dumb-init -r 15", "dumb-init -r 15:", "dumb-init -r :15",
		"dumb-init -r 15::12", "dumb-init -r 15:derp", "dumb-init -r derp:15", "dumb-init -r 15:-1",
		"dumb-init -r -15:1", "dumb-init -r 15_:3", "dumb-init -r 0:15", "dumb-init -r 1:32", "dumb-init -r 32:1",
		"dumb-init -r 0x1:3", "dumb-init -r 99999999999999999999:3", "dumb-init -r 15:99999999999999999999",
		"dumb-init -r 15:3 -r 15",
		"catatonit -x", "catatonit -P", "catatonit -v", "catatonit --frob", "CATATONIT_LOG= catatonit", "CATATONIT_LOG=x podman-init",
		"LAMEDUCK_DELAY=x tini", "LAMEDUCK_DELAY=9 LAMEDUCK_GRACE_PERIOD=5 dumb-init",
	} {
		env, name, args := splitCall(call)
		cfg, err := configAs(name, env, append(args, "--", "command"))
		if err == nil {
			err = cfg.Validate()
		}
		if err == nil {
			t.Errorf("%s: accepted as %+v", call, cfg)
		}
	}
	for _, name := range []string{"tini", "dumb-init", "catatonit"} {
		for _, args := range [][]string{nil, {"--"}, {"-g"}, {"-v", "--"}} {
			if cfg, err := configAs(name, nil, args); err == nil {
				t.Errorf("%s %q runs %q", name, args, cfg.Command)
			}
		}
	}
}

// TestDropinCommand: flags end at the first word that is not a flag; the rest is the
// command.
func TestDropinCommand(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"ls -d /", "ls -d /"},
		{"-- ls -d /", "ls -d /"},
		{"-v ls -g -v --version -- -h", "ls -g -v --version -- -h"},
		{"-- -- x", "-- x"},
		{"-- --version", "--version"},
		{"-- prog -- x", "prog -- x"},
		{"-v -- prog -- x", "prog -- x"},
		{"prog a -- x", "prog a -- x"},
		{"- x", "- x"},
	} {
		for _, name := range []string{"tini", "dumb-init", "catatonit"} {
			if name == "catatonit" {
				c.args = strings.TrimPrefix(c.args, "-v ") // catatonit has no -v
			}
			cfg, err := configAs(name, nil, strings.Fields(c.args))
			if got := strings.Join(cfg.Command, " "); err != nil || got != c.want {
				t.Errorf("%s %s: runs %q, %v; want %q", name, c.args, got, err, c.want)
			}
		}
	}
	// Only tini documents such a call.
	for name, want := range map[string]string{"tini": "prog -x -- y", "dumb-init": "prog -- -x -- y", "catatonit": "prog -- -x -- y"} {
		cfg, err := configAs(name, nil, strings.Fields("prog -- -x -- y"))
		if got := strings.Join(cfg.Command, " "); err != nil || got != want {
			t.Errorf("%s prog -- -x -- y: runs %q, %v; want %q", name, got, err, want)
		}
	}
}

// TestDropinAnswers: flags that only ask: the beginning of the answer, and the descriptor.
// A program that follows is not run.
func TestDropinAnswers(t *testing.T) {
	for _, c := range []struct {
		call, begins string
		fd           int
	}{
		{"tini --version", "tini version 0.19.0", syscall.Stdout},
		{"docker-init --version", "tini version 0.19.0", syscall.Stdout},
		{"tini -h", "usage: tini ", syscall.Stdout},
		{"tini -l", "lameduck is licensed", syscall.Stdout},
		{"dumb-init -V", "dumb-init v1.2.5", syscall.Stderr},
		{"dumb-init --version", "dumb-init v1.2.5", syscall.Stderr},
		{"dumb-init --vers", "dumb-init v1.2.5", syscall.Stderr},
		{"dumb-init -h", "usage: dumb-init ", syscall.Stderr},
		{"dumb-init --help", "usage: dumb-init ", syscall.Stderr},
		{"catatonit -V", "tini version ", syscall.Stdout},
		{"catatonit --version", "tini version ", syscall.Stdout},
		{"podman-init -V", "tini version ", syscall.Stdout},
		{"catatonit -h", "usage: catatonit ", syscall.Stderr},
		{"catatonit -L", "lameduck is licensed", syscall.Stdout},
	} {
		_, name, args := splitCall(c.call)
		for _, args := range [][]string{args, append(args, "command", "-x")} {
			d := dropinFor(name)
			_, err := readDropin(d, args)
			text, fd, ok := d.flags.answer()
			if err != nil || !ok || fd != c.fd || !strings.HasPrefix(text, c.begins) || !strings.HasSuffix(text, "\n") {
				t.Errorf("%s %v: %q, %d, %v, %v", name, args, text, fd, ok, err)
			}
		}
	}
	for _, name := range []string{"tini", "dumb-init", "catatonit"} {
		d := dropinFor(name)
		if _, err := readDropin(d, []string{"command", "--version", "-h", "-V", "-l", "-L"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text, _, ok := d.flags.answer(); ok {
			t.Errorf("%s answers its command's flags: %q", name, text)
		}
	}
}

// TestDropinStartCode: the exit codes of each init for a command that cannot be started.
func TestDropinStartCode(t *testing.T) {
	for name, want := range map[string][5]int{
		"tini": {127, 126, 1, 1, 1}, "docker-init": {127, 126, 1, 1, 1},
		"dumb-init": {2, 2, 2, 2, 2}, "catatonit": {1, 1, 1, 1, 1}, "podman-init": {1, 1, 1, 1, 1},
	} {
		for i, errno := range []syscall.Errno{syscall.ENOENT, syscall.EACCES, syscall.ENOTDIR, syscall.E2BIG, syscall.EAGAIN} {
			err := fmt.Errorf("cannot start: %w", &shim.StartError{Command: "x", Err: errno})
			var start *shim.StartError
			errors.As(err, &start)
			if got := dropinFor(name).startCode(start); got != want[i] {
				t.Errorf("%s: %v: %d, want %d", name, errno, got, want[i])
			}
		}
	}
}

// TestDropinMessages: an error about a flag of lameduck names its variable, and an error about
// an unknown flag says that lameduck's flags are variables here.
func TestDropinMessages(t *testing.T) {
	for c, want := range map[string]string{
		"LAMEDUCK_STOP_SIGNAL=frob tini":                       "--stop-signal=frob (LAMEDUCK_STOP_SIGNAL): ",
		"LAMEDUCK_QUIET_FOR=3 LAMEDUCK_DELAY=x tini":           "--delay=x (LAMEDUCK_DELAY): ",
		"LAMEDUCK_DELAY=50 LAMEDUCK_GRACE_PERIOD=20 catatonit": "--delay=50s (LAMEDUCK_DELAY) does not fit into --grace-period=20 (LAMEDUCK_GRACE_PERIOD),",
		"LAMEDUCK_DELAY=5 LAMEDUCK_MAX_DELAY=2 dumb-init":      "--delay=5s (LAMEDUCK_DELAY) is longer than --max-delay=2s (LAMEDUCK_MAX_DELAY): ",
		"tini -x":          "unknown flag -x (tini ",
		"catatonit -G":     "unknown flag -G (catatonit ",
		"catatonit -P":     "unknown flag -P (catatonit ",
		"dumb-init --verz": "unknown flag --verz (dumb-init ",
		"tini --delay=5":   "lameduck's own flags are variables here, LAMEDUCK_DELAY for --delay)\n",
	} {
		env, name, args := splitCall(c)
		got := callAs(t, name, env, append(args, "--", "command")...)
		if got.code != exitDropin || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: %+v, want %q", c, got, want)
		}
	}
	for _, call := range []string{"dumb-init -r 15:0", "dumb-init -c -r 15:0", "dumb-init -r 15:3 -r 15:0"} { // asked for with the flag of the init
		_, name, args := splitCall(call)
		cfg, err := configAs(name, nil, append(args, "command"))
		if outline, planErr := shim.NewOutline(cfg); err != nil || planErr != nil || len(outline.Warnings) > 0 {
			t.Errorf("%s: %v, %v, warns %+v", call, err, planErr, outline)
		}
	}
}
