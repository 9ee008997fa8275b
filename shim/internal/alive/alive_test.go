package alive

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestLife tests an alive file from Create to Remove, which leaves a newer file at the path.
func TestLife(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(t.TempDir(), "alive")
	f := testutil.Must(Create(path))
	text, _ := os.ReadFile(path)
	info, _ := os.Stat(path)
	if string(text) != "lameduck alive 1\n" || info.Mode() != 0o644 || !Present(path) {
		t.Errorf("content %q, mode %v, present: %v", text, info.Mode(), Present(path))
	}
	f.Remove()
	if _, err := os.Stat(path); !os.IsNotExist(err) || Present(path) {
		t.Errorf("after Remove: Stat = %v, present: %v", err, Present(path))
	}
	f = testutil.Must(Create(path))
	os.Remove(path)
	testutil.WriteFile(t, path, "newer")
	f.Remove()
	if !Present(path) {
		t.Error("Remove has removed the newer file")
	}
}

// TestCrash tests the file of an owner that ended without Remove: not present, and free to be taken
// over.
func TestCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	f := testutil.Must(Create(path))
	begin := time.Now()
	_, err := Create(path)
	if err == nil || !strings.Contains(err.Error(), "another running lameduck") || time.Since(begin) < lockTimeout {
		t.Errorf("Create while the owner runs = %v after %v", err, time.Since(begin))
	}
	unix.Close(f.fd) // as the kernel does
	if _, err := os.Stat(path); err != nil || Present(path) {
		t.Errorf("after the owner's end: Stat = %v, present: %v; want a file that is not present", err, Present(path))
	}
	testutil.Must(Create(path)).Remove()
}

// TestOthers tests paths other than alive files: present if they exist, and never written to.
func TestOthers(t *testing.T) {
	dir := t.TempDir()
	testutil.WriteFile(t, dir+"/file", "something")
	testutil.WriteFile(t, dir+"/longer", content+"x")
	unix.Mkfifo(dir+"/fifo", 0o644)
	os.Symlink("nowhere", dir+"/dangling")
	for _, cells := range tables.Rows(`
		# path | present | Create
		           | true  | cannot create the file: is a directory
		file       | true  | cannot overwrite a file of another program: give another path
		longer     | true  | cannot overwrite a file of another program: give another path
		fifo       | true  | cannot use a path other than a regular file: give another path
		dangling   | false | cannot use a symbolic link: give the path of a file
		none/below | false | cannot create the file: no such file or directory
		file/below | false | cannot create the file: not a directory
	`) {
		path := filepath.Join(dir, cells[0])
		_, err := Create(path)
		if got := fmt.Sprint(Present(path)); got != cells[1] || fmt.Sprint(err) != cells[2] {
			t.Errorf("%q: present: %s, Create = %v", cells, got, err)
		}
	}
	if text, _ := os.ReadFile(dir + "/file"); string(text) != "something" {
		t.Errorf("Create has overwritten the file: %q", text)
	}
}

// TestPlanted tests links that another user has planted at the path: Create refuses the link, and
// leaves its target as it is.
func TestPlanted(t *testing.T) {
	for name, plant := range map[string]func(victim, path string) error{
		"a symbolic link": os.Symlink,
		"a hard link":     os.Link,
	} {
		dir := t.TempDir()
		victim, path := dir+"/victim", dir+"/alive"
		os.WriteFile(victim, nil, 0o600) // empty, as a new alive file is
		testutil.Must(0, plant(victim, path))
		if _, err := Create(path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: Create = %v, want an error about the link", name, err)
		}
		if info, err := os.Stat(victim); err != nil || info.Size() != 0 || info.Mode() != 0o600 {
			t.Errorf("%s: the target has changed: %v, %v", name, info, err)
		}
	}
}
