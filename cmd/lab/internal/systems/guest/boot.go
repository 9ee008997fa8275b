package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// boot mounts file systems, loads the modules in the order of names, configures
// the network, and executes lameduck under the same PID.
func boot(args []string) error {
	if err := mountAll(); err != nil {
		return err
	}
	if err := loadModules(); err != nil {
		return err
	}
	if err := setUp("lo", netip.MustParsePrefix("127.0.0.1/8")); err != nil {
		return err
	}
	if err := setUp("eth0", netip.MustParsePrefix("10.0.2.15/24")); err != nil {
		return err
	}
	args = append([]string{"/lameduck"}, args...)
	return fmt.Errorf("cannot execute %q: %w", args, unix.Exec(args[0], args, []string{"PATH=/", "HOME=/"}))
}

func mountAll() error {
	for _, m := range []struct{ kind, path string }{
		{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"cgroup2", "/sys/fs/cgroup"}, {"tmpfs", "/tmp"},
	} {
		if m.kind == "proc" && os.Getenv("GUEST_PROC") == "no" {
			continue
		}
		if err := unix.Mount(m.kind, m.path, m.kind, 0, ""); err != nil {
			return fmt.Errorf("cannot mount %q: %w", m.path, err)
		}
	}
	return nil
}

// loadModules loads the files of /modules. See finit_module(2).
func loadModules() error {
	paths, err := filepath.Glob("/modules/*")
	if err != nil {
		return err
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil {
			err = unix.InitModule(data, "")
		}
		if err != nil {
			return fmt.Errorf("cannot load %q: %w", path, err)
		}
	}
	return nil
}

// setUp gives an interface an address and brings the interface up. A driver may need some time
// to find the device. See netdevice(7).
func setUp(name string, prefix netip.Prefix) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := configure(fd, name, prefix)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.ENODEV) || time.Now().After(deadline) {
			return fmt.Errorf("cannot set up %s: %w", name, err)
		}
	}
}

func configure(fd int, name string, prefix netip.Prefix) error {
	address, mask := prefix.Addr().As4(), netmask(prefix.Bits())
	for _, step := range []struct {
		request uint
		address [4]byte
	}{{unix.SIOCSIFADDR, address}, {unix.SIOCSIFNETMASK, mask}} {
		req, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := req.SetInet4Addr(step.address[:]); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, step.request, req); err != nil {
			return err
		}
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

func netmask(bits int) (mask [4]byte) {
	for i := range bits {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return mask
}
