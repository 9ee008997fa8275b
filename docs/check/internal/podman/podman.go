// Package podman runs podman for tests, with a store of its own and with few demands on
// the machine.
package podman

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// patience bounds one call of podman on a busy machine; a call may compile much.
const patience = 5 * time.Minute

// settings need no systemd, no network and no limits above the test's own.
const settings = `
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
[containers]
netns = "none"
log_driver = "k8s-file"
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
`

// Podman is a podman with a store of its own.
type Podman struct {
	Dir string // for temporary files; the store is in it
}

// New returns a podman whose containers and images go with the test. The test is skipped
// where podman does not work.
func New(t *testing.T) *Podman {
	t.Helper()
	Needs(t, "podman", "runc", "conmon")
	dir, err := os.MkdirTemp("", "podman") // t.TempDir's path is too long for podman's sockets
	if err != nil {
		t.Fatal(err)
	}
	p := &Podman{dir}
	t.Cleanup(func() { p.remove(t) })
	if err := os.WriteFile(dir+"/containers.conf", []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := p.Run("ps", "-a"); err != nil {
		t.Skipf("podman does not work: %v\n%s", err, out)
	}
	if err := p.load("empty", func(i *Image) { i.Add("empty", "", 0o644) }); err != nil {
		t.Skipf("podman cannot import an image: %v", err)
	}
	return p
}

func (p *Podman) remove(t *testing.T) {
	p.Run("pod", "rm", "-a", "-f", "-t", "0")
	p.Run("rm", "-a", "-f", "-t", "0")
	p.Run("image", "umount", "-a", "-f")
	p.Run("rmi", "-a", "-f")
	exec.Command("umount", "-l", p.Dir+"/root/overlay").Run()
	if err := os.RemoveAll(p.Dir); err != nil {
		t.Error(err)
	}
}

// Needs skips the test where a program is not installed, and returns the paths of the
// programs.
func Needs(t *testing.T, programs ...string) (paths []string) {
	t.Helper()
	for _, program := range programs {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Skipf("%s is not installed", program)
		}
		paths = append(paths, path)
	}
	return paths
}

// Run calls podman and returns both output streams.
func (p *Podman) Run(words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	store := []string{"--root", p.Dir + "/root", "--runroot", p.Dir + "/run", "--tmpdir", p.Dir + "/tmp"}
	cmd := exec.CommandContext(ctx, "podman", append(store, words...)...)
	cmd.Env = append(os.Environ(), "HOME="+p.Dir, "CONTAINERS_CONF="+p.Dir+"/containers.conf")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Must is Run for calls that must not fail.
func (p *Podman) Must(t *testing.T, words ...string) string {
	t.Helper()
	out, err := p.Run(words...)
	if err != nil {
		t.Fatalf("podman %q: %v\n%s", words, err, out)
	}
	return out
}

// Image is a file system in the making. The first error is kept.
type Image struct {
	archive *tar.Writer
	paths   map[string]bool
	err     error
}

// Release is the image of a release, by the name that pages, manifests and Dockerfiles
// have. Tests make the image of the checkout.
const Release = "ghcr.io/lameduck-init/lameduck:1"

// Stored returns the name of an image in the store. The prefix localhost/ keeps podman
// from looking for the image elsewhere.
func Stored(name string) string {
	if name == Release {
		return name
	}
	return "localhost/" + name
}

// Import makes an image from scratch. changes are instructions of a Dockerfile, with one
// variable in each ENV.
func (p *Podman) Import(t *testing.T, name string, fill func(*Image), changes ...string) {
	t.Helper()
	if err := p.load(name, fill, changes...); err != nil {
		t.Fatal(err)
	}
}

func (p *Podman) load(name string, fill func(*Image), changes ...string) error {
	file, err := os.CreateTemp(p.Dir, "image*.tar")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	i := &Image{archive: tar.NewWriter(file), paths: map[string]bool{}}
	fill(i)
	if err := errors.Join(i.err, i.archive.Close()); err != nil {
		return err
	}
	words := []string{"import", "-q"}
	for _, change := range changes {
		words = append(words, "--change", change)
	}
	if out, err := p.Run(append(words, file.Name(), Stored(name))...); err != nil {
		return fmt.Errorf("podman %q: %w\n%s", words, err, out)
	}
	return nil
}

// Add adds a file, or a folder if path ends in a slash. The first of two with the same
// path counts.
func (i *Image) Add(path, content string, mode int64) {
	path = strings.TrimPrefix(path, "/")
	if i.paths[path] {
		return
	}
	i.paths[path] = true
	err := i.archive.WriteHeader(&tar.Header{Name: path, Mode: mode, Size: int64(len(content))})
	if err == nil {
		_, err = i.archive.Write([]byte(content))
	}
	i.err = errors.Join(i.err, err)
}

// Copy adds a file of this machine, executable.
func (i *Image) Copy(path, from string) {
	content, err := os.ReadFile(from)
	i.err = errors.Join(i.err, err)
	i.Add(path, string(content), 0o755)
}
