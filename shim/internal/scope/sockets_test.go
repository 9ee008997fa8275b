package scope

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// TestProcessStates: the states of processes without sockets. A file named fd stands for
// an unreadable directory.
func TestProcessStates(t *testing.T) {
	const rest = " 7 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 "
	for _, c := range []struct {
		name     string
		fd, stat string // "": missing
		bad      bool
	}{
		{"reaped", "", "", false},
		{"reaped meanwhile", "unreadable", "", false},
		{"without descriptors", "empty", "9 (a) S" + rest + "1 0", false},
		{"a zombie", "empty", "9 (a) Z" + rest + "1 0", false},
		{"a zombie, unreadable", "unreadable", "9 (a) Z" + rest + "1 0", false},
		{"the first thread has ended", "empty", "9 (a) Z" + rest + "3 0", true},
		{"the first thread has ended, unreadable", "unreadable", "9 (a) Z" + rest + "3 0", true},
		{"unreadable", "unreadable", "9 (a) S" + rest + "1 0", true},
		{"unreadable, and odd", "unreadable", "9 (a) S", true},
		{"a socket", "socket:[7]", "9 (a) S" + rest + "1 0", false},
		{"no socket", "pipe:[8]", "9 (a) S" + rest + "1 0", false},
	} {
		top := t.TempDir()
		dir := filepath.Join(top, "9")
		if c.fd != "" || c.stat != "" {
			must(t, os.Mkdir(dir, 0o700))
		}
		fd := filepath.Join(dir, "fd")
		switch c.fd {
		case "":
		case "unreadable":
			must(t, os.WriteFile(fd, nil, 0o600))
		default:
			must(t, os.Mkdir(fd, 0o700))
			if c.fd != "empty" {
				must(t, os.Symlink(c.fd, filepath.Join(fd, "3")))
			}
		}
		if c.stat != "" {
			must(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(c.stat), 0o600))
		}
		held := Sockets{Inodes: Inodes{}}
		if err := held.add(procfs.Root(top), 9); (err != nil) != c.bad {
			t.Errorf("%s: %v", c.name, err)
		}
		if held.Inodes.Has(7) != (c.fd == "socket:[7]") || held.Inodes.Has(8) {
			t.Errorf("%s: %v", c.name, held.Inodes)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
