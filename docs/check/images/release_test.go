package images

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/docs/check/internal/podman"
)

// confined are the flags of a container without privileges.
var confined = []string{"run", "--rm", "--pull=never", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"}

// TestRelease: the image of a release has the program and no other file, and needs no
// privilege.
func TestRelease(t *testing.T) {
	newEngine(t).isRelease(t, podman.Release)
}

// TestSource: Dockerfile makes the same image from source.
func TestSource(t *testing.T) {
	e := newEngine(t)
	e.build(t, "source:1", root+"/Dockerfile", root, e.golang(t)...)
	e.isRelease(t, "source:1")
}

func (e *engine) isRelease(t *testing.T, image string) {
	t.Helper()
	if c := e.config(t, image); c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/lameduck"}) || c.Cmd != nil || c.StopSignal != "" {
		t.Errorf("configuration %+v", c)
	}
	var found []string
	err := fs.WalkDir(os.DirFS(e.Must(t, "image", "mount", image)), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		found = append(found, info.Mode().String()+" "+path)
		return err
	})
	if want := []string{"dr-xr-xr-x .", "-rwxr-xr-x lameduck"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("%v: files %q, want %q", err, found, want)
	}
	if out, err := e.Run(append(confined, image, "--version")...); err != nil || !strings.HasPrefix(out, "lameduck version ") {
		t.Errorf("--version: %v\n%s", err, out)
	}
}

// TestInstall: as an init container the image leaves a program in the volume that runs
// the command of another image.
func TestInstall(t *testing.T) {
	e := newEngine(t)
	volume, err := os.MkdirTemp(e.Dir, "volume")
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(volume, 0o777) // as emptyDir is
	e.Must(t, append(confined, "-v", volume+":/shared", podman.Release, "install", "/shared")...)
	e.base(t, "app:1", func(base) {}, `ENTRYPOINT ["/bin/sh"]`)
	// PID 1 is lameduck, and the shell its child.
	out := e.Must(t, append(confined, "--user=1234", "-v", volume+":/shared:ro", "--entrypoint", "/shared/lameduck", "app:1",
		"--", "/bin/sh", "-c", `read line </proc/1/cmdline; echo "$line, $PPID"`)...)
	if !strings.HasPrefix(out, "/shared/lameduck") || !strings.HasSuffix(out, ", 1") {
		t.Errorf("output %q", out)
	}
}
