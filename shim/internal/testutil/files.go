package testutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files returns a new directory with the sections of a text, each in the file that its first line names,
// "== NAME". The text "->TARGET" makes a symbolic link, and a name that ends with a slash a directory.
func Files(t testing.TB, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for section := range strings.SplitSeq("\n"+text, "\n== ") {
		name, body, _ := strings.Cut(section, "\n")
		path := filepath.Join(dir, name)
		body = strings.TrimSuffix(body, "\n")
		target, isLink := strings.CutPrefix(body, "->")
		var err error
		Must(0, os.MkdirAll(filepath.Dir(path), 0o700))
		switch {
		case name == "":
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o700)
		case isLink:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(body+"\n"), 0o600)
		}
		Must(0, err)
	}
	return dir
}
