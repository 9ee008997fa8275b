package main

import (
	"errors"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// catatonit is openSUSE/catatonit 0.2, and Podman's podman-init, without the pause process
// of pods (-P).
type catatonit struct {
	Group   bool `short:"g"`
	Help    bool `short:"h"`
	License bool `short:"L"`
	Version bool `short:"V"`
}

const catatonitUsage = "catatonit [-ghLV] [--] PROGRAM [ARG...]"

func (c *catatonit) answer() (string, int, bool) {
	switch {
	case c.Version:
		return "tini version 0.2.1_catatonit_lameduck-" + version + "\n", syscall.Stdout, true
	case c.License:
		return license, syscall.Stdout, true
	}
	return helpAs(catatonitUsage), syscall.Stderr, c.Help
}

func (c *catatonit) adjust(cfg *shim.Config) error {
	if _, set := cli.Lookup(cfg.Env, "CATATONIT_LOG"); set {
		return errors.New("CATATONIT_LOG is reserved: unset it")
	}
	if _, set := cli.Lookup(cfg.Env, "CATATONIT_DEBUG"); set {
		cfg.Level = shim.Debug
	}
	cfg.Group = cfg.Group || c.Group
	return nil
}
