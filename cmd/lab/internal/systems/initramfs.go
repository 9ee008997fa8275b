package systems

import (
	"fmt"
	"os"
	"path/filepath"
)

// initramfs returns the archive for a kernel of the processor and variant.
func (b *build) initramfs(k *kernel, v *variant) ([]byte, error) {
	a := &archive{}
	for _, dir := range []string{"dev", "proc", "sys", "tmp", "modules"} {
		a.directory(dir)
	}
	a.device("dev/console", 5, 1) // opened by the kernel for PID 1, before devtmpfs
	for _, program := range []string{"lameduck", "guest"} {
		data, err := os.ReadFile(filepath.Join(b.dir, program))
		if err != nil {
			return nil, err
		}
		a.file(program, data)
	}
	if err := addModules(a, k, v); err != nil {
		return nil, err
	}
	if v.command == "rooms" {
		if err := a.tree(filepath.Join(b.dir, "rooms"), "rooms"); err != nil {
			return nil, err
		}
	}
	return a.bytes(), nil
}

// addModules numbers the modules, since guest loads them in the order of names.
func addModules(a *archive, k *kernel, v *variant) error {
	names := k.machine.modules
	if v.diag {
		names = append([]string{"tcp_diag"}, names...)
	}
	modules, err := k.modules.withDependencies(names...)
	if err != nil {
		return err
	}
	for i, m := range modules {
		a.file(fmt.Sprintf("modules/%02d-%s.ko", i, m.name), m.data)
	}
	return nil
}

// tree appends a directory and all files below.
func (a *archive) tree(dir, name string) error {
	a.directory(name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		from, to := filepath.Join(dir, entry.Name()), name+"/"+entry.Name()
		if entry.IsDir() {
			err = a.tree(from, to)
		} else {
			err = a.copy(from, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) copy(from, to string) error {
	data, err := os.ReadFile(from)
	if err == nil {
		a.file(to, data)
	}
	return err
}
