package main

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim"
)

// configAs returns the configuration of a call by the name of another init.
func configAs(name string, env, args []string) (shim.Config, error) {
	cfg, _, err := dropinFor(name).config(args, env)
	if err == nil {
		_, err = shim.Review(cfg)
	}
	return cfg, err
}

//go:embed testdata/dropin.txt
var dropinCalls string

// TestDropinConfig: the configuration for each flag and variable of each init.
func TestDropinConfig(t *testing.T) {
	for _, cells := range tables.Rows(dropinCalls) {
		line, want := cells[0], cells[1]
		env, name, args := splitCall(t, line)
		base := shim.Config{Command: []string{"command"}, Level: shim.Warn}
		if len(args)+len(env) > 0 {
			base, _ = configAs(name, nil, base.Command)
		}
		cfg, err := configAs(name, env, append(args, "--", "command"))
		given := cfg.Env
		base.Env, cfg.Env = nil, nil
		fields := tables.Differing(base, cfg)
		slices.Sort(fields)
		got := strings.Join(fields, " ")
		if err != nil {
			got = "refused"
		}
		if got != want {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want)
		}
		for _, entry := range env { // other variables are for the command
			if ours := strings.HasPrefix(entry, cli.Prefix); err == nil && slices.Contains(given, entry) == ours {
				t.Errorf("%s: the command's environment is %v", line, given)
			}
		}
	}
}

// TestDropinNames: the names of the inits, alone and as in upstream releases; other names
// with the same beginning are lameduck.
func TestDropinNames(t *testing.T) {
	for want, names := range map[string]string{
		"tini": "tini tini-static docker-init tini-static-amd64 tini-x86_64 tini-arm64 tini-armel tini-armhf tini-i386 " +
			"tini-static-muslc-amd64 tini-ppc64el tini-ppc64le tini-s390x tini-mips64el tini-v0.19.0 tini_0.19.0-amd64 docker-init-28.0.1",
		"dumb-init": "dumb-init dumb-init_1.2.5_x86_64 dumb-init_1.2.5_aarch64 dumb-init_1.2.2_amd64 dumb-init_1.0.0",
		"catatonit": "catatonit podman-init catatonit.x86_64 catatonit-0.2.1 catatonit.aarch64",
		"<nil>": "lameduck lameduck_1.2.5_x86_64 tinily tini-helper tini.sh tini- tini--amd64 tini_ tini-amd64- tinix86_64 tini64 " +
			"tini-staticx my-tini init dumb-init.sh dumb-init_wrapper dumb-initd dumb catatonit-debug sh .tini",
	} {
		for name := range strings.FieldsSeq(names) {
			got := "<nil>"
			if d := dropinFor("/usr/local/bin/" + name); d != nil {
				got = d.name
			}
			if got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	}
	if d := dropinFor(""); d != nil {
		t.Errorf("no name at all is %s", d.name)
	}
}
