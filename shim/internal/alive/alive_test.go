package alive

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain: the test binary is its own helper, which holds a file until it is killed.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "hold" {
		if _, err := Create(os.Args[2]); err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
		}
		os.Stdout.WriteString("held\n")
		bufio.NewReader(os.Stdin).ReadByte() // until it is killed
	}
	os.Exit(m.Run())
}

// owner starts a process that holds the file at path.
func owner(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	exe, _ := os.Executable()
	cmd := exec.Command(exe, "hold", path)
	out, err := cmd.StdoutPipe()
	cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatal(line)
	}
	return cmd
}

func TestLife(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(t.TempDir(), "alive")
	if Present(path) {
		t.Error("it is there before it was made")
	}
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	info, _ := os.Stat(path)
	if string(text) != "lameduck alive 1\n" || info.Mode() != 0o644 || !Present(path) {
		t.Errorf("%q, mode %v, present: %v", text, info.Mode(), Present(path))
	}
	f.Remove()
	if _, err := os.Stat(path); err == nil || Present(path) {
		t.Error("it is there after it was removed")
	}
}

// TestCrash: the file of an owner that was killed holds up nobody, and may be
// taken over.
func TestCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	cmd := owner(t, path)
	if !Present(path) {
		t.Error("its owner runs, and it is not there")
	}
	if _, err := Create(path); err == nil || !strings.Contains(err.Error(), "another lameduck") {
		t.Errorf("taken from its owner: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if _, err := os.Stat(path); err != nil || Present(path) {
		t.Errorf("left behind: %v, present: %v", err, Present(path))
	}
	f, err := Create(path)
	if err != nil || !Present(path) {
		t.Fatalf("taken over: %v", err)
	}
	f.Remove()
}

// TestLookers: those who look do not keep an owner from the file.
func TestLookers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case <-over:
				return
			default:
				Present(path)
			}
		}
	}()
	for range 200 {
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		f.Remove()
	}
}

// TestOthers: what is no file of ours is there, or is not; and is never written to.
func TestOthers(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	os.WriteFile(at("file"), []byte("something"), 0o644)
	os.WriteFile(at("longer"), []byte(mark+"x"), 0o644)
	unix.Mkfifo(at("fifo"), 0o644)
	os.Symlink(at("nowhere"), at("dangling"))
	for name, want := range map[string]bool{
		"": true, "file": true, "longer": true, "fifo": true, "dangling": false, "none": false, "file/below": false, "none/below": false,
	} {
		if got := Present(at(name)); got != want {
			t.Errorf("%q is present: %v", name, got)
		}
	}
	if isRoot := unix.Getuid() == 0; isRoot { // a device, as /dev/null is one
		unix.Mknod(at("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))
	}
	for _, name := range []string{"file", "longer", "", "none/below", "fifo", "null"} {
		if _, err := os.Lstat(at(name)); err != nil && name == "null" {
			continue // which only root can make
		}
		if _, err := Create(at(name)); err == nil {
			t.Errorf("%q was made ours", name)
		}
	}
	if text, _ := os.ReadFile(at("file")); string(text) != "something" {
		t.Errorf("it was overwritten: %q", text)
	}
}

// TestRemoveOther: a file that came in the place of ours stays.
func TestRemoveOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path)
	os.WriteFile(path, []byte("other"), 0o644)
	if f.Remove(); !Present(path) {
		t.Error("it was removed")
	}
}

// TestPlanted: in a directory where everybody may write, a link that another user has
// put in the file's place is refused, and the file at its other end stays as it is.
func TestPlanted(t *testing.T) {
	for name, plant := range map[string]func(victim, path string) error{
		"symbolic link":  os.Symlink,
		"dangling link":  func(_, path string) error { return os.Symlink("nowhere", path) },
		"link to itself": func(_, path string) error { return os.Symlink(path, path) },
		"hard link":      os.Link,
	} {
		t.Run(name, func(t *testing.T) {
			dir, home := t.TempDir(), t.TempDir()
			victim, path := filepath.Join(home, "victim"), filepath.Join(dir, "alive")
			os.Chmod(dir, 0o777)
			os.WriteFile(victim, nil, 0o600) // empty, as a file of lameduck's own may be
			if err := plant(victim, path); err != nil {
				t.Fatal(err)
			}
			if unix.Getuid() == 0 && name != "hard link" {
				os.Lchown(path, 65534, 65534)
			}
			_, err := Create(path)
			if err == nil || !strings.Contains(err.Error(), "link") || strings.Contains(err.Error(), "cannot make it") {
				t.Errorf("made, or refused for another reason: %v", err)
			}
			info, err := os.Stat(victim)
			if err != nil || info.Size() != 0 || info.Mode() != 0o600 {
				t.Errorf("the victim has changed: %v, %v", info, err)
			}
			if found, _ := os.ReadDir(dir); len(found) != 1 {
				t.Errorf("in the directory there is now %v", found)
			}
		})
	}
}
