package termlog

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

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
another writes over it | -   | the first line = the first line/; over boom/; second = boom/irst line/second/;
    - = boom/irst line/
the same text by another | one/b/ | one = one/b/one/; two = one/b/two/
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
			return strings.Repeat("x", testutil.Must(strconv.Atoi(match[1:])))
		})
	}
	for _, cells := range tables.Rows(logTests) {
		path := t.TempDir() + "/log"
		testutil.WriteFile(t, path, expand(cells[1]))
		log := newFile(path)
		over := testutil.Must(os.OpenFile(path, os.O_WRONLY, 0))
		defer over.Close()
		for step := range strings.SplitSeq(cells[2], ";") {
			verb, text, _ := strings.Cut(strings.TrimSpace(step), " ")
			text = expand(text)
			switch verb {
			case "append":
				testutil.WriteFile(t, path, read(path)+text)
			case "set":
				testutil.WriteFile(t, path, text)
			case "over":
				over.WriteString(text)
			case "remove":
				os.Remove(path)
			default:
				ours, want, _ := strings.Cut(step, " = ")
				if err := log.write(expand(ours)); err != nil || read(path) != expand(want) {
					t.Errorf("%s: %.50s: %v, and the file is %.200q", cells[0], step, err, read(path))
				}
			}
		}
	}
}

func read(path string) string { return string(testutil.Must(os.ReadFile(path))) }

// TestTerminationLogNowhere: a path that is not a writable regular file is an error at once
// if the user gave the path, and ignored otherwise.
func TestTerminationLogNowhere(t *testing.T) {
	dir := t.TempDir()
	fifo, fresh := dir+"/fifo", dir+"/fresh"
	testutil.Must(0, unix.Mkfifo(fifo, 0o644))
	for path, why := range map[string]string{
		dir: "is a directory", fifo: "not a regular file", "/dev/full": "not a regular file",
		dir + "/no/such/dir": "no such file", fresh: "<nil>",
	} {
		if err := (&file{path: path}).write("text"); err != nil {
			t.Errorf("%s by default: %v", path, err)
		}
		if err := newFile(path).write(""); !strings.Contains(fmt.Sprint(err), why) {
			t.Errorf("%s: %v, want %q", path, err, why)
		}
	}
	if info, err := os.Stat(fresh); err != nil || info.Size() != 0 || info.Mode()&^0o644 != 0 {
		t.Errorf("the file that the user gave: %v, %v", info, err)
	}
	if *newFile("") != (file{path: "/dev/termination-log"}) || *newFile("none") != (file{}) {
		t.Errorf("by default it is %+v, and none %+v", newFile(""), newFile("none"))
	}
}

// TestTerminationLogPlanted: links are followed only in directories to which no other user
// may write.
func TestTerminationLogPlanted(t *testing.T) {
	for _, cells := range tables.Rows(`
		# planted | the directory's mode and owner | why it is not followed
		symbolic link | 0755 -1    | <nil>
		hard link     | 0755 -1    | <nil>
		symbolic link | 0777 -1    | symbolic link in a directory that others may write to
		dangling link | 0777 -1    | symbolic link in a directory that others may write to
		hard link     | 0777 -1    | (hard links) in a directory that others may write to
		symbolic link | 01777 -1   | symbolic link in
		symbolic link | 0775 -1    | symbolic link in
		symbolic link | 0755 65534 | symbolic link in
		symbolic link | 0755 0     | <nil>
		nothing       | 0777 -1    | <nil>
	`) {
		t.Run(cells[0]+" "+cells[1], func(t *testing.T) {
			var mode, owner int
			fmt.Sscanf(cells[1], "%o %d", &mode, &owner)
			home := testutil.Files(t, "== victim\nsecret")
			victim, missing := home+"/victim", home+"/missing"
			links := map[string]string{"symbolic link": "== log\n->" + victim, "dangling link": "== log\n->" + missing}
			dir := testutil.Files(t, links[cells[0]])
			if cells[0] == "hard link" {
				testutil.Must(0, os.Link(victim, dir+"/log"))
			}
			testutil.Must(0, unix.Chmod(dir, uint32(mode)))
			if err := os.Chown(dir, owner, -1); err != nil {
				t.Skip("no other user: ", err)
			}
			err := newFile(dir + "/log").write("text")
			if !strings.Contains(fmt.Sprint(err), cells[2]) {
				t.Errorf("it says %v, want %q", err, cells[2])
			}
			if _, missing := os.Stat(missing); missing == nil || err != nil && read(victim) != "secret\n" {
				t.Errorf("the victim has become %q", read(victim))
			}
		})
	}
}

// TestTerminationLogFull: on a full disk the file stays as before, and removed text leaves
// room.
func TestTerminationLogFull(t *testing.T) {
	netns.Need(t)
	dir := t.TempDir()
	testutil.Must(0, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")) // in the mount namespace of TestMain
	testutil.Must(0, unix.Mount("tmpfs", dir, "tmpfs", 0, "nr_blocks=2,mode=755"))
	defer unix.Unmount(dir, 0)
	log := newFile(dir + "/log")
	write := func(text, want string, wantErr error) {
		if err := log.write(text); err != wantErr || read(log.path) != want {
			t.Errorf("%v, and the file is %q", err, read(log.path))
		}
	}
	fill := func() { os.WriteFile(dir+"/fill", make([]byte, 3*os.Getpagesize()), 0o644) }
	write("", "", nil)
	fill()
	write("text", "", unix.ENOSPC)
	write("text", "", unix.ENOSPC)
	os.Remove(dir + "/fill")
	write("text", "text\n", nil)
	fill()
	write("text", "text\n", nil)
}

// TestPrintable: a text is lines of printable characters, whatever forges others.
func TestPrintable(t *testing.T) {
	w := New(t.TempDir() + "/log")
	w.Write("a\x1b[2J\nforged", "b")
	w.Flush()
	if got := read(w.file.path); got != `a\x1b[2J\nforged`+"\nb\n" {
		t.Errorf("%q", got)
	}
}

// TestMain runs the tests in a mount namespace of their own.
func TestMain(m *testing.M) { netns.Main(m, syscall.CLONE_NEWNS) }

// TestFault: a fault of lameduck's own costs a text, and does not end the process.
func TestFault(t *testing.T) {
	w := &Writer{}
	w.Write("to no file")
	close(w.texts)
	<-w.written
}
