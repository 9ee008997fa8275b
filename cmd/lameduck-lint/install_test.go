package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// product is the path of the product's module.
const product = "github.com/lameduck-init/lameduck"

// TestInstall: go install builds the program and the linter from a module proxy, a folder
// with both modules of the checkout as the release that the linter's go.mod names.
func TestInstall(t *testing.T) {
	release := goSays(t, "list", "-m", "-f", "{{.Version}}", product)
	proxy, bin := t.TempDir(), t.TempDir()
	publish(t, proxy, module.Version{Path: product, Version: release}, root)
	publish(t, proxy, module.Version{Path: product + "/cmd/lameduck-lint", Version: release}, ".")
	goInstall(t, proxy, bin, product+"/cmd/lameduck@latest")
	goInstall(t, proxy, bin, product+"/cmd/lameduck-lint@latest")
	for call, want := range map[string]string{
		"lameduck --version":                       "lameduck version " + release + ", a plain build (see docs/install.md)\n",
		"lameduck-lint --version":                  "lameduck-lint version " + release + "\n",
		"lameduck -- echo ran":                     "ran\n",
		"lameduck-lint " + root + "/docs/examples": "",
	} {
		words := strings.Fields(call)
		said, err := exec.Command(filepath.Join(bin, words[0]), words[1:]...).CombinedOutput()
		if err != nil || string(said) != want {
			t.Errorf("%s: %v, says %q; want %q", call, err, said, want)
		}
	}
}

// publish puts the module in dir into the folder of a module proxy; see
// https://go.dev/ref/mod#goproxy-protocol.
func publish(t *testing.T, proxy string, m module.Version, dir string) {
	t.Helper()
	versions := filepath.Join(proxy, m.Path, "@v")
	err := os.MkdirAll(versions, 0o755)
	gomod, readErr := os.ReadFile(filepath.Join(dir, "go.mod"))
	write := func(name, text string) error { return os.WriteFile(filepath.Join(versions, name), []byte(text), 0o644) }
	err = errors.Join(err, readErr,
		write("list", m.Version+"\n"),
		write(m.Version+".info", fmt.Sprintf(`{"Version": %q}`, m.Version)),
		write(m.Version+".mod", string(gomod)))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(versions, m.Version+".zip"))
	if err == nil {
		err = zip.CreateFromDir(archive, m, dir)
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
}

// goInstall runs go install with an empty module cache, which takes the two modules from proxy
// and their dependencies from the files of the ordinary module cache, or else from the
// ordinary proxies.
func goInstall(t *testing.T, proxy, bin, path string) {
	t.Helper()
	cmd := exec.Command("go", "install", "-trimpath", path)
	cmd.Dir = bin // no module, no workspace
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-modcacherw", "GOBIN="+bin, "GOMODCACHE="+t.TempDir(), "GOSUMDB=off",
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(goSays(t, "env", "GOMODCACHE"), "cache/download")+","+goSays(t, "env", "GOPROXY"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go install %s: %v\n%s", path, err, out)
	}
}

// goSays returns the output of a go command in the linter's folder.
func goSays(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}
