package systems

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// kernel is a kernel to boot, and the modules.
type kernel struct {
	version string
	image   string
	modules moduleTree
	machine *machine
}

// findKernels returns the kernels of directories laid out like a root file
// system, or with such directories inside.
func findKernels(dirs []string) (found []*kernel, err error) {
	for _, dir := range dirs {
		images, _ := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
		below, _ := filepath.Glob(filepath.Join(dir, "*", "boot", "vmlinuz-*"))
		for _, image := range append(images, below...) {
			k, err := newKernel(image)
			if err != nil {
				return nil, err
			}
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no kernel found in %q: give -kernels=DIR, and fill DIR by .ci/kernels DIR", dirs)
	}
	return found, nil
}

func newKernel(image string) (*kernel, error) {
	version := strings.TrimPrefix(filepath.Base(image), "vmlinuz-")
	k := &kernel{version: version, image: image, machine: machineOf(version)}
	if k.machine == nil {
		return nil, fmt.Errorf("cannot boot %q: no machine for this processor", image)
	}
	root := filepath.Dir(filepath.Dir(image))
	for _, lib := range []string{"lib", "usr/lib"} {
		dir := filepath.Join(root, lib, "modules", version)
		if _, err := os.Stat(dir); err == nil {
			k.modules, err = readModules(dir)
			return k, err
		}
	}
	return nil, fmt.Errorf("cannot boot %q: no modules in %q", image, filepath.Join(root, "lib/modules", version))
}

// machineOf returns the machine for a kernel, whose version ends in Debian's name of
// the processor. Other distributions' versions do not, and their kernel is the host's.
func machineOf(version string) *machine {
	arch := runtime.GOARCH
	for _, m := range machines {
		if strings.HasSuffix(version, "-"+m.arch) {
			arch = m.arch
		}
	}
	i := slices.IndexFunc(machines, func(m machine) bool { return m.arch == arch })
	if i < 0 {
		return nil
	}
	return &machines[i]
}
