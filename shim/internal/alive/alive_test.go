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

// TestMain lets the test binary hold an alive file until killed.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "hold" {
		if _, err := Create(os.Args[2]); err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
		}
		os.Stdout.WriteString("held\n")
		bufio.NewReader(os.Stdin).ReadByte()
	}
	os.Exit(m.Run())
}

// owner starts a process with the alive file at path.
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

// TestLife tests an alive file from Create to Remove.
func TestLife(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(t.TempDir(), "alive")
	if Present(path) {
		t.Error("present before Create")
	}
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	info, _ := os.Stat(path)
	if string(text) != "lameduck alive 1\n" || info.Mode() != 0o644 || !Present(path) {
		t.Errorf("content %q, mode %v, present: %v", text, info.Mode(), Present(path))
	}
	f.Remove()
	if _, err := os.Stat(path); err == nil || Present(path) {
		t.Error("present after Remove")
	}
}

// TestCrash tests the file of a killed owner: not present, and free to be taken over.
func TestCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	cmd := owner(t, path)
	if !Present(path) {
		t.Error("not present while the owner runs")
	}
	if _, err := Create(path); err == nil || !strings.Contains(err.Error(), "another running lameduck") {
		t.Errorf("Create while the owner runs = %v, want an error", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if _, err := os.Stat(path); err != nil || Present(path) {
		t.Errorf("after the owner was killed: Stat = %v, present: %v; want a file that is not present", err, Present(path))
	}
	f, err := Create(path)
	if err != nil || !Present(path) {
		t.Fatalf("Create after the owner was killed: %v", err)
	}
	f.Remove()
}

// TestPresentDuringCreate tests Create while another goroutine calls Present.
func TestPresentDuringCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
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

// TestOthers tests paths other than alive files: present if they exist, and never
// written to.
func TestOthers(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	os.WriteFile(at("file"), []byte("something"), 0o644)
	os.WriteFile(at("longer"), []byte(content+"x"), 0o644)
	unix.Mkfifo(at("fifo"), 0o644)
	os.Symlink(at("nowhere"), at("dangling"))
	for name, want := range map[string]bool{
		"": true, "file": true, "longer": true, "fifo": true, "dangling": false, "none": false, "file/below": false, "none/below": false,
	} {
		if got := Present(at(name)); got != want {
			t.Errorf("Present(%q) = %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"file", "longer", "", "none/below", "fifo"} {
		if _, err := Create(at(name)); err == nil {
			t.Errorf("Create(%q) succeeded", name)
		}
	}
	if text, _ := os.ReadFile(at("file")); string(text) != "something" {
		t.Errorf("Create has overwritten the file: %q", text)
	}
}

// TestRemoveOther tests Remove after another file has taken the path.
func TestRemoveOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path)
	os.WriteFile(path, []byte("other"), 0o644)
	f.Remove()
	if !Present(path) {
		t.Error("Remove has removed the other file")
	}
}

// TestPlanted tests links that another user has planted at the path, in a directory
// where all users may write: Create refuses the link, and leaves its target as it is.
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
			os.WriteFile(victim, nil, 0o600) // empty, as a new alive file is
			if err := plant(victim, path); err != nil {
				t.Fatal(err)
			}
			if unix.Getuid() == 0 && name != "hard link" {
				os.Lchown(path, 65534, 65534)
			}
			_, err := Create(path)
			if err == nil || !strings.Contains(err.Error(), "link") || strings.Contains(err.Error(), "cannot create") {
				t.Errorf("Create = %v, want an error about the link", err)
			}
			info, err := os.Stat(victim)
			if err != nil || info.Size() != 0 || info.Mode() != 0o600 {
				t.Errorf("the link's target has changed: %v, %v", info, err)
			}
			if found, _ := os.ReadDir(dir); len(found) != 1 {
				t.Errorf("the directory now has %v", found)
			}
		})
	}
}
