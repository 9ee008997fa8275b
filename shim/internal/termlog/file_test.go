package termlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

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

// logTests write to termination logs: a name, the text before, and steps. A step is an action and
// the text afterwards: a text of lameduck's alone, or what another program does, "append TEXT",
// "set TEXT", "over TEXT" (at its own place, as with 2>/dev/termination-log) or "remove". A slash is
// a newline, "-" no text, and *N stands for N letters.
const logTests = `
fresh                | -     | - = -; one = one/; the second = the second/; 3 = 3/; - = -; 4 = 4/
after another's      | boom  | - = boom; one = boom/one/; second = boom/second/; - = boom
after another's line | boom/ | one = boom/one/; - = boom/
another writes after ours | - | one = one/; append boom/; second = boom/second/; append bang; - = boom/bang;
    third = boom/bang/third/
another truncates    | -     | one = one/; set boom/; second = boom/second/; set -; third = third/; set boom/;
    - = boom/
another takes it away | -    | one = one/; remove; second = second/
another writes over it | -   | this is the first line = this is the first line/; over boom/; second = boom/second/;
    over bang; third = boom/bang/third/; over !/; - = boom/bang!/
the same text by another | one/ | one = one/one/; two = one/two/
another's to the limit | *4096 | one = *4096; set *4091/; one = *4091/one/; four = *4091/; - = *4091/
another's beyond it  | -     | one = one/; set *9000; two = *9000; - = *9000; set -; three = three/
ours at the limit    | -     | *4095 = *4095/; *4096 = *4095/; *9000 = *4095/; one = one/
`

// TestTerminationLog: lameduck's text replaces lameduck's previous text, and never the text
// of others.
func TestTerminationLog(t *testing.T) {
	letters := regexp.MustCompile(`\*(\d+)`)
	expand := func(text string) string {
		text = strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(text), "-"), "/", "\n")
		return letters.ReplaceAllStringFunc(text, func(match string) string {
			n, _ := strconv.Atoi(match[1:])
			return strings.Repeat("x", n)
		})
	}
	for _, cells := range script.Rows(logTests) {
		t.Run(cells[0], func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			testutil.WriteFile(t, path, expand(cells[1]))
			log := newFile(path)
			over, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer over.Close()
			for step := range strings.SplitSeq(cells[2], ";") {
				step = strings.TrimSpace(step)
				verb, text, _ := strings.Cut(step, " ")
				text = expand(text)
				switch verb {
				case "append":
					testutil.WriteFile(t, path, string(testutil.Must(os.ReadFile(path)))+text)
				case "set":
					testutil.WriteFile(t, path, text)
				case "over":
					over.WriteString(text)
				case "remove":
					os.Remove(path)
				default:
					ours, want, _ := strings.Cut(step, " = ")
					wantFile(t, log, expand(ours), expand(want))
				}
			}
		})
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
	if log := newFile(""); log.path != "/dev/termination-log" || log.given {
		t.Errorf("by default it is %+v", log)
	}
}

// TestTerminationLogPlanted: links are followed only in directories to which no other user
// may write.
func TestTerminationLogPlanted(t *testing.T) {
	t.Parallel()
	plants := map[string]func(victim, path string) error{
		"symbolic link": os.Symlink,
		"dangling link": func(victim, path string) error { return os.Symlink(victim+".not", path) },
		"hard link":     os.Link,
		"regular file":  func(_, path string) error { return os.WriteFile(path, nil, 0o644) },
		"nothing":       func(_, _ string) error { return nil },
	}
	for _, cells := range script.Rows(`
		# planted | the directory's mode and owner | why it is not followed
		symbolic link | 0755 -1    |
		hard link     | 0755 -1    |
		symbolic link | 0777 -1    | symbolic link in a directory that others may write to
		dangling link | 0777 -1    | symbolic link in a directory that others may write to
		hard link     | 0777 -1    | (hard links) in a directory that others may write to
		symbolic link | 01777 -1   | symbolic link in
		symbolic link | 0775 -1    | symbolic link in
		symbolic link | 0755 65534 | symbolic link in
		symbolic link | 0755 0     |
		regular file  | 0777 -1    |
		nothing       | 0777 -1    |
	`) {
		t.Run(cells[0]+" "+cells[1], func(t *testing.T) {
			var mode, owner int
			fmt.Sscanf(cells[1], "%o %d", &mode, &owner)
			dir, home, why := t.TempDir(), t.TempDir(), cells[2]
			victim, path := home+"/victim", dir+"/log"
			testutil.WriteFile(t, victim, "secret")
			if err := errors.Join(plants[cells[0]](victim, path), unix.Chmod(dir, uint32(mode))); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(dir, owner, -1); err != nil {
				t.Skip("no other user: ", err)
			}
			err := newFile(path).write("text")
			if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
				t.Errorf("it says %v, want %q", err, why)
			}
			if text := string(testutil.Must(os.ReadFile(victim))); why != "" && text != "secret" || exists(victim+".not") {
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
		for unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "") == unix.EBUSY {
			time.Sleep(time.Millisecond) // while a process of a parallel test still has the descriptor open
		}
		if err := (&file{path: dir + "/log", given: true}).write(""); err != unix.EROFS {
			t.Errorf("it says %v", err)
		}
		if err := (&file{path: dir + "/log"}).write("text"); err != nil {
			t.Errorf("by default it says %v", err)
		}
	})
}

// TestMain runs the tests in a mount namespace of their own.
func TestMain(m *testing.M) { netns.Main(m, syscall.CLONE_NEWNS) }
