package termlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// newLog returns a termination log in a file with text.
func newLog(t *testing.T, text string) (log *file, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	testutil.WriteFile(t, path, text)
	return newFile(path), path
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// wantFile writes text, and expects the content want in the file.
func wantFile(t *testing.T, log *file, text, want string) {
	t.Helper()
	if err := log.write(text); err != nil {
		t.Errorf("%.50q: %v", text, err)
	}
	got, err := os.ReadFile(log.path)
	if err != nil || string(got) != want {
		t.Errorf("after %.50q the file is %d bytes, %.200q, want %d, %.200q: %v", text, len(got), got, len(want), want, err)
	}
}

// exes returns n times the letter x.
func exes(n int) string { return strings.Repeat("x", n) }

// logTests write to termination logs with different content.
var logTests = map[string]func(t *testing.T){
	"fresh": func(t *testing.T) {
		log, _ := newLog(t, "")
		wantFile(t, log, "", "")
		wantFile(t, log, "one", "one\n")
		wantFile(t, log, "the second", "the second\n")
		wantFile(t, log, "3", "3\n")
		wantFile(t, log, "", "")
		wantFile(t, log, "4", "4\n")
	},
	"after another's": func(t *testing.T) {
		log, _ := newLog(t, "boom")
		wantFile(t, log, "", "boom")
		wantFile(t, log, "one", "boom\none\n")
		wantFile(t, log, "second", "boom\nsecond\n")
		wantFile(t, log, "", "boom")
	},
	"after another's line": func(t *testing.T) {
		log, _ := newLog(t, "boom\n")
		wantFile(t, log, "one", "boom\none\n")
		wantFile(t, log, "", "boom\n")
	},
	"another writes after ours": func(t *testing.T) {
		log, path := newLog(t, "")
		wantFile(t, log, "one", "one\n")
		appendTo(t, path, "boom\n")
		wantFile(t, log, "second", "boom\nsecond\n")
		appendTo(t, path, "bang")
		wantFile(t, log, "", "boom\nbang")
		wantFile(t, log, "third", "boom\nbang\nthird\n")
	},
	"another truncates": func(t *testing.T) {
		log, path := newLog(t, "")
		wantFile(t, log, "one", "one\n")
		testutil.WriteFile(t, path, "boom\n")
		wantFile(t, log, "second", "boom\nsecond\n")
		testutil.WriteFile(t, path, "")
		wantFile(t, log, "third", "third\n")
		testutil.WriteFile(t, path, "boom of another length\n")
		wantFile(t, log, "", "boom of another length\n")
	},
	"another takes it away": func(t *testing.T) {
		log, path := newLog(t, "")
		wantFile(t, log, "one", "one\n")
		os.Remove(path)
		wantFile(t, log, "second", "second\n")
	},
	"another writes over it, at a place of its own": func(t *testing.T) {
		log, path := newLog(t, "")
		file, err := os.OpenFile(path, os.O_WRONLY, 0) // as with 2>/dev/termination-log
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		wantFile(t, log, "this is the first line", "this is the first line\n")
		file.WriteString("boom\n")
		wantFile(t, log, "second", "boom\nsecond\n")
		file.WriteString("bang")
		wantFile(t, log, "third", "boom\nbang\nthird\n")
		file.WriteString("!\n")
		wantFile(t, log, "", "boom\nbang!\n")
	},
	"the same text by another": func(t *testing.T) {
		log, _ := newLog(t, "one\n")
		wantFile(t, log, "one", "one\none\n")
		wantFile(t, log, "two", "one\ntwo\n")
	},
	"another's to the limit": func(t *testing.T) {
		log, path := newLog(t, exes(maxSize))
		wantFile(t, log, "one", exes(maxSize))
		testutil.WriteFile(t, path, exes(maxSize-5)+"\n")
		wantFile(t, log, "one", exes(maxSize-5)+"\none\n")
		wantFile(t, log, "four", exes(maxSize-5)+"\n")
		wantFile(t, log, "", exes(maxSize-5)+"\n")
	},
	"another's beyond it": func(t *testing.T) {
		log, path := newLog(t, "")
		wantFile(t, log, "one", "one\n")
		testutil.WriteFile(t, path, exes(9000))
		wantFile(t, log, "two", exes(9000))
		wantFile(t, log, "", exes(9000))
		testutil.WriteFile(t, path, "")
		wantFile(t, log, "three", "three\n")
	},
	"ours at the limit": func(t *testing.T) {
		log, _ := newLog(t, "")
		wantFile(t, log, exes(maxSize-1), exes(maxSize-1)+"\n")
		wantFile(t, log, exes(maxSize), exes(maxSize-1)+"\n")
		wantFile(t, log, exes(9000), exes(maxSize-1)+"\n")
		wantFile(t, log, "one", "one\n")
	},
}

// TestTerminationLog: lameduck's text replaces lameduck's previous text, and never the text
// of others.
func TestTerminationLog(t *testing.T) {
	for name, test := range logTests {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
	}
}

// TestTerminationLogNowhere: a path that is not a writable regular file is an error at once
// if the user gave the path, and ignored otherwise.
func TestTerminationLogNowhere(t *testing.T) {
	dir := t.TempDir()
	fifo, fresh := filepath.Join(dir, "fifo"), filepath.Join(dir, "fresh")
	if err := unix.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, why := range map[string]string{
		dir: "is a directory", fifo: "not a regular file", "/dev/full": "not a regular file", "/dev/null": "not a regular file",
		dir + "/no/such/dir": "no such file", fresh: "",
	} {
		err := newFile(path).write("")
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("%s: %v, want %q", path, err, why)
		}
		log := &file{path: path}
		for _, text := range []string{"", "text", ""} {
			if err := log.write(text); err != nil {
				t.Errorf("%s by default: %v", path, err)
			}
		}
	}
	if info, err := os.Stat(fresh); err != nil || info.Size() != 0 || info.Mode() != 0o644&^umask() {
		t.Errorf("the file that was to be made: %v, %v", info, err)
	}
	missing := filepath.Join(dir, "missing")
	(&file{path: missing}).write("text")
	if exists(missing) {
		t.Error("a file that the user did not give was created")
	}
	none := newFile(None)
	if err := none.write("text"); err != nil || none.path != "" || exists(None) {
		t.Errorf("none is %+v, %v", none, err)
	}
	if log := newFile(""); log.path != "/dev/termination-log" || log.given {
		t.Errorf("by default it is %+v", log)
	}
}

// TestTerminationLogPlanted: links are followed only in directories to which no other user
// may write.
func TestTerminationLogPlanted(t *testing.T) {
	t.Parallel()
	type directory struct {
		mode  os.FileMode
		owner int
	}
	symlink := func(victim, path string) error { return os.Symlink(victim, path) }
	dangling := func(victim, path string) error { return os.Symlink(victim+".not", path) }
	for name, c := range map[string]struct {
		in    directory
		plant func(victim, path string) error
		why   string // "": followed
	}{
		"symbolic link, own directory":      {directory{0o755, -1}, symlink, ""},
		"hard link, own directory":          {directory{0o755, -1}, os.Link, ""},
		"symbolic link, shared directory":   {directory{0o777, -1}, symlink, "symbolic link in a directory that others may write to"},
		"dangling link, shared directory":   {directory{0o777, -1}, dangling, "symbolic link in a directory that others may write to"},
		"hard link, shared directory":       {directory{0o777, -1}, os.Link, "(hard links) in a directory that others may write to"},
		"symbolic link, sticky directory":   {directory{0o777 | os.ModeSticky, -1}, symlink, "symbolic link in"},
		"symbolic link, group's directory":  {directory{0o775, -1}, symlink, "symbolic link in"},
		"symbolic link, another's dir":      {directory{0o755, 65534}, symlink, "symbolic link in"},
		"symbolic link, root's own dir":     {directory{0o755, 0}, symlink, ""},
		"regular file, shared directory":    {directory{0o777, -1}, func(_, path string) error { return os.WriteFile(path, nil, 0o644) }, ""},
		"nothing planted, shared directory": {directory{0o777, -1}, func(_, _ string) error { return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, home := t.TempDir(), t.TempDir()
			victim, path := home+"/victim", dir+"/log"
			testutil.WriteFile(t, victim, "secret")
			if err := errors.Join(c.plant(victim, path), os.Chmod(dir, c.in.mode)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(dir, c.in.owner, -1); err != nil {
				t.Skip("no other user: ", err)
			}
			err := newFile(path).write("text")
			if c.why == "" && err != nil || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
				t.Errorf("it says %v, want %q", err, c.why)
			}
			if text := string(testutil.Must(os.ReadFile(victim))); c.why != "" && text != "secret" || exists(victim+".not") {
				t.Errorf("the victim has become %q", text)
			}
		})
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func umask() os.FileMode {
	mask := unix.Umask(0)
	unix.Umask(mask)
	return os.FileMode(mask)
}

// TestTerminationLogFull: on a full disk the file stays as before, and removed text leaves
// room.
func TestTerminationLogFull(t *testing.T) {
	t.Parallel()
	page := os.Getpagesize()
	testutil.OnTmpfs(t, "nr_blocks=2,mode=755", func(dir string) {
		fill := func() {
			file, err := os.Create(dir + "/fill")
			for err == nil {
				_, err = file.Write(make([]byte, page))
			}
			file.Close()
		}
		text := func(path string) string { text, _ := os.ReadFile(path); return string(text) }

		log := &file{path: dir + "/log", given: true}
		if err := log.write(""); err != nil {
			t.Error(err)
		}
		fill()
		for range 2 {
			if err := log.write("text"); err != unix.ENOSPC || text(log.path) != "" || log.ownText != "" {
				t.Errorf("%v, and the file is %q", err, text(log.path))
			}
		}
		os.Remove(dir + "/fill")
		for range 2 {
			if err := log.write("text"); err != nil || text(log.path) != "text\n" {
				t.Errorf("%v, and the file is %q", err, text(log.path))
			}
			fill()
		}
	})
}

// TestTerminationLogReadOnly: a file on a read-only file system is an error if the user gave
// the path.
func TestTerminationLogReadOnly(t *testing.T) {
	t.Parallel()
	testutil.OnTmpfs(t, "mode=755", func(dir string) {
		if err := os.WriteFile(dir+"/log", []byte("boom"), 0o644); err != nil {
			t.Error(err)
		}
		err := unix.EBUSY // while a process of a parallel test still has the descriptor open
		for end := time.Now().Add(testutil.Patience); err == unix.EBUSY && time.Now().Before(end); time.Sleep(time.Millisecond) {
			err, _ = unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "").(unix.Errno)
		}
		if err != 0 {
			t.Error(err)
		}
		if err := (&file{path: dir + "/log", given: true}).write(""); err != unix.EROFS {
			t.Errorf("it says %v", err)
		}
		if err := (&file{path: dir + "/log"}).write("text"); err != nil {
			t.Errorf("by default it says %v", err)
		}
	})
}
