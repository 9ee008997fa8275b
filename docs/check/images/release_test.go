package images

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// confined are the flags of a container that may do nothing.
var confined = []string{"run", "--rm", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"}

// TestRelease: the released image has the program and nothing else, and needs nothing.
func TestRelease(t *testing.T) {
	p := newPodman(t)
	if c := p.config(t, "lameduck:1"); c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/lameduck"}) || c.Cmd != nil || c.StopSignal != "" {
		t.Errorf("the image says %+v", c)
	}
	var found []string
	err := fs.WalkDir(os.DirFS(p.must(t, "image", "mount", "lameduck:1")), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		found = append(found, info.Mode().String()+" "+path)
		return err
	})
	if want := []string{"dr-xr-xr-x .", "-rwxr-xr-x lameduck"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("%v: there is %q, want %q", err, found, want)
	}
	if out, err := p.run(append(confined, "lameduck:1", "--version")...); err != nil || !strings.HasPrefix(out, "lameduck version ") {
		t.Errorf("--version: %v\n%s", err, out)
	}
}

// TestInstall: the image as an init container, and what it leaves in the volume runs
// the command of another.
func TestInstall(t *testing.T) {
	p := newPodman(t)
	volume, err := os.MkdirTemp(p.dir, "volume")
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(volume, 0o777) // as emptyDir is
	p.must(t, append(confined, "-v", volume+":/shared", "lameduck:1", "install", "/shared")...)
	p.base(t, "app:1", func(*base) {}, `ENTRYPOINT ["/bin/sh"]`)
	// PID 1 is lameduck, and the shell its child.
	out := p.must(t, append(confined, "--user=1234", "-v", volume+":/shared:ro", "--entrypoint", "/shared/lameduck", "app:1",
		"--", "/bin/sh", "-c", `read line </proc/1/cmdline; echo "$line, $PPID"`)...)
	if !strings.HasPrefix(out, "/shared/lameduck") || !strings.HasSuffix(out, ", 1") {
		t.Errorf("it said %q", out)
	}
}
