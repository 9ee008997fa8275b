package scope

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestProcessStates: which processes certainly hold nothing. An fd that is no
// directory stands for one that cannot be read.
func TestProcessStates(t *testing.T) {
	const rest = " 7 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 "
	for _, c := range []struct {
		name     string
		fd, stat string // "": there is none
		bad      bool
	}{
		{"reaped", "", "", false},
		{"reaped while we looked", "unreadable", "", false},
		{"without descriptors", "empty", "9 (a) S" + rest + "1 0", false},
		{"a zombie", "empty", "9 (a) Z" + rest + "1 0", false},
		{"a zombie that is closed to us", "unreadable", "9 (a) Z" + rest + "1 0", false},
		{"the first thread has ended", "empty", "9 (a) Z" + rest + "3 0", true},
		{"the first thread has ended, closed to us", "unreadable", "9 (a) Z" + rest + "3 0", true},
		{"closed to us", "unreadable", "9 (a) S" + rest + "1 0", true},
		{"closed to us, and odd", "unreadable", "9 (a) S", true},
		{"a socket", "socket:[7]", "9 (a) S" + rest + "1 0", false},
		{"no socket", "pipe:[8]", "9 (a) S" + rest + "1 0", false},
	} {
		dir := t.TempDir()
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
		held := Held{Inodes: Inodes{}}
		if err := held.add(dir); (err != nil) != c.bad {
			t.Errorf("%s: %v", c.name, err)
		}
		if held.Inodes.Has(7) != (c.fd == "socket:[7]") || held.Inodes.Has(8) {
			t.Errorf("%s: %v", c.name, held.Inodes)
		}
	}
}

// TestGone: a process may end before its file is opened, or before it is read.
func TestGone(t *testing.T) {
	for err, want := range map[error]bool{unix.ENOENT: true, unix.ESRCH: true, unix.EACCES: false, unix.EPERM: false, nil: false} {
		if gone(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
