package systems

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFindKernels: in a root file system, and in directories of unpacked packages.
func TestFindKernels(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{
		"boot/vmlinuz-6.1.0-1-amd64", "lib/modules/6.1.0-1-amd64/a.ko",
		"unpacked/boot/vmlinuz-6.12.0-s390x", "unpacked/usr/lib/modules/6.12.0-s390x/a.ko",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kernels, err := findKernels([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range kernels {
		got = append(got, k.version+" on "+k.machine.arch)
		if k.modules["a"] == "" {
			t.Errorf("%s: modules %v", k.version, k.modules)
		}
	}
	if want := []string{"6.1.0-1-amd64 on amd64", "6.12.0-s390x on s390x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := findKernels([]string{t.TempDir()}); err == nil {
		t.Error("no error without a kernel")
	}
}

// TestParameters: the kernels cut a command line, the shortest ones at 896 bytes.
func TestParameters(t *testing.T) {
	for _, m := range machines {
		for _, v := range variants {
			got := m.parameters(&v)
			if len(got) >= 896 || !strings.HasPrefix(got, "console="+m.console+" ") || !strings.HasSuffix(got, " /guest "+v.command) {
				t.Errorf("%s, %s: %d bytes: %q", m.arch, v.name, len(got), got)
			}
		}
	}
}
