package systems

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// moduleTree has the paths of a kernel's modules, by name.
type moduleTree map[string]string

// module is a module's object file, decompressed.
type module struct {
	name string
	data []byte
}

// unpackers are the programs that decompress a module.
var unpackers = map[string]string{".xz": "xz", ".zst": "zstd", ".gz": "gzip"}

func readModules(dir string) (moduleTree, error) {
	tree := moduleTree{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name, ok := moduleName(path); ok {
			tree[name] = path
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the modules in %q: %w", dir, err)
	}
	return tree, nil
}

// moduleName is the name of the module in a file. The kernel takes '-' for '_'.
func moduleName(path string) (name string, ok bool) {
	base := filepath.Base(path)
	if _, compressed := unpackers[filepath.Ext(base)]; compressed {
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	name, ok = strings.CutSuffix(base, ".ko")
	return strings.ReplaceAll(name, "-", "_"), ok
}

// withDependencies returns the named modules, each after its dependencies. A
// module without a file is part of the kernel.
func (tree moduleTree) withDependencies(names ...string) ([]module, error) {
	var ordered []module
	seen := map[string]bool{"": true}
	var add func(name string) error
	add = func(name string) error {
		path, isModule := tree[name]
		if seen[name] || !isModule {
			return nil
		}
		seen[name] = true
		data, err := readModule(path)
		if err != nil {
			return err
		}
		dependencies, err := dependenciesOf(data)
		if err != nil {
			return fmt.Errorf("cannot read the dependencies of %q: %w", path, err)
		}
		for _, other := range dependencies {
			if err := add(other); err != nil {
				return err
			}
		}
		ordered = append(ordered, module{name, data})
		return nil
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return ordered, nil
}

func readModule(path string) ([]byte, error) {
	unpacker, compressed := unpackers[filepath.Ext(path)]
	if !compressed {
		return os.ReadFile(path)
	}
	data, err := exec.Command(unpacker, "-dc", path).Output()
	if err != nil {
		return nil, fmt.Errorf("cannot decompress %q: %w", path, err)
	}
	return data, nil
}

// dependenciesOf reads the "depends" entry of a module's .modinfo section.
func dependenciesOf(object []byte) ([]string, error) {
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	return parseDepends(info), nil
}

// parseDepends reads entries of the form NAME=VALUE, each ended by a zero byte.
func parseDepends(info []byte) []string {
	for entry := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(entry, "depends="); ok && list != "" {
			return strings.Split(strings.ReplaceAll(list, "-", "_"), ",")
		}
	}
	return nil
}
