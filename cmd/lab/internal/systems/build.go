package systems

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// build has the programs for one kind of processor: in dir are lameduck, guest, and
// rooms/NAME/NAME.test with the package's testdata.
type build struct{ dir string }

// rooms are the packages of the "unit tests" variant, which decode the kernel's
// answers.
var rooms = []string{"procfs", "scope", "sockdiag"}

// newBuild builds in dir from the source in root.
func newBuild(ctx context.Context, root, dir, arch string) (*build, error) {
	b := &build{dir}
	run := func(dir string, words ...string) error {
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build for %s: %q: %w\n%s", arch, words, err, out)
		}
		return nil
	}
	if err := run(root, "make", "build", "GOARCH="+arch, "OUT="+filepath.Join(dir, "lameduck")); err != nil {
		return nil, err
	}
	if err := run(filepath.Join(root, "cmd/lab"), "go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "guest"), "./internal/systems/guest"); err != nil {
		return nil, err
	}
	for _, room := range rooms {
		source, to := filepath.Join(root, "shim/internal", room), filepath.Join(dir, "rooms", room)
		if err := run(root, "go", "test", "-c", "-o", filepath.Join(to, room+".test"), "./shim/internal/"+room); err != nil {
			return nil, err
		}
		if err := copyTestdata(source, to); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func copyTestdata(source, to string) error {
	from := filepath.Join(source, "testdata")
	if _, err := os.Stat(from); err != nil {
		return nil // a package without
	}
	return os.CopyFS(filepath.Join(to, "testdata"), os.DirFS(from))
}
