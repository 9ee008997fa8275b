package main

import (
	_ "embed"
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

//go:embed testdata/dropin.txt
var dropinCalls string

// TestDropinConfig: the configuration for each flag and variable of each init.
func TestDropinConfig(t *testing.T) {
	for _, cells := range rows(dropinCalls) {
		env, name, args := splitCall(t, cells[0])
		plain, err := configAs(name, nil, []string{"command"})
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := configAs(name, env, append(args, "--", "command"))
		if err == nil {
			err = cfg.Validate()
		}
		got := differences(plain, cfg)
		if err != nil {
			got = "refused"
		}
		if got != cells[1] || err == nil && !slices.Equal(cfg.Command, []string{"command"}) {
			t.Errorf("%s: runs %q with %q, %v; want %q", cells[0], cfg.Command, got, err, cells[1])
		}
		for _, entry := range env { // other variables are for the command
			if ours := strings.HasPrefix(entry, cli.Prefix); err == nil && slices.Contains(cfg.Env, entry) == ours {
				t.Errorf("%s: the command's environment is %v", cells[0], cfg.Env)
			}
		}
	}
}

// differences returns the fields of b that differ from the fields of a.
func differences(a, b shim.Config) string {
	a.Env, b.Env = nil, nil
	b.Texts = nil
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

// TestDropinCommand: flags end at the first word that is not a flag; the rest is the command.
func TestDropinCommand(t *testing.T) {
	for _, cells := range rows(`
		ls -d /                      | ls -d /
		-- ls -d /                   | ls -d /
		-v ls -g --version -- -h     | ls -g --version -- -h
		-- -- x                      | -- x
		-- --version                 | --version
		-- prog -- x                 | prog -- x
		-v -- prog -- x              | prog -- x
		prog a -- x                  | prog a -- x
		- x                          | - x
		# without a command
		                             | refused
		--                           | refused
		-v --                        | refused
	`) {
		for _, name := range []string{"tini", "dumb-init", "catatonit"} {
			args := cells[0]
			if name == "catatonit" {
				args = strings.TrimPrefix(args, "-v ") // catatonit has no -v
			}
			cfg, err := configAs(name, nil, strings.Fields(args))
			got := strings.Join(cfg.Command, " ")
			if err != nil {
				got = "refused"
			}
			if got != cells[1] {
				t.Errorf("%s %s: runs %q, %v; want %q", name, args, got, err, cells[1])
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

// TestDropinAnswers: flags that only ask: the beginning of the answer, and where it goes. A
// program that follows is not run.
func TestDropinAnswers(t *testing.T) {
	for _, cells := range rows(`
		tini --version        | 1 tini version 0.19.0
		docker-init --version | 1 tini version 0.19.0
		tini -h               | 1 usage: tini
		tini -l               | 1 lameduck is licensed
		dumb-init -V          | 2 dumb-init v1.2.5
		dumb-init --version   | 2 dumb-init v1.2.5
		dumb-init --vers      | 2 dumb-init v1.2.5
		dumb-init -h          | 2 usage: dumb-init
		dumb-init --help      | 2 usage: dumb-init
		catatonit -V          | 1 tini version
		catatonit --version   | 1 tini version
		podman-init -V        | 1 tini version
		catatonit -h          | 2 usage: catatonit
		catatonit -L          | 1 lameduck is licensed
	`) {
		_, name, args := splitCall(t, cells[0])
		for _, args := range [][]string{args, append(args, "command", "-x")} {
			d := dropinFor(name)
			_, err := readDropin(d, args)
			text, fd, ok := d.flags.answer()
			got := fmt.Sprint(fd, " ", text)
			if err != nil || !ok || !strings.HasPrefix(got, cells[1]) || !strings.HasSuffix(got, "\n") {
				t.Errorf("%s %v: %q, %v, %v", name, args, got, ok, err)
			}
		}
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

// TestDropinDrops: a TERM that the init's own flag drops is no warning.
func TestDropinDrops(t *testing.T) {
	for _, call := range []string{"-r 15:0", "-c -r 15:0", "-r 15:3 -r 15:0"} {
		cfg, err := configAs("dumb-init", nil, append(strings.Fields(call), "command"))
		if outline, planErr := shim.NewOutline(cfg); err != nil || planErr != nil || len(outline.Warnings) > 0 {
			t.Errorf("%s: %v, %v, warns %+v", call, err, planErr, outline)
		}
	}
}
