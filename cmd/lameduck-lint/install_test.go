package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// product is the path of the product's module.
const product = "github.com/lameduck-init/lameduck"

// TestInstall: go install builds the program and the linter from a module proxy, a folder
// with both modules of the checkout as the release that the linter's go.mod names.
func TestInstall(t *testing.T) {
	release := requiredRelease(t)
	proxy, bin := t.TempDir(), t.TempDir()
	publish(t, proxy, product, release, root)
	publish(t, proxy, product+"/cmd/lameduck-lint", release, ".")
	for _, version := range []string{"@latest", "@" + release} {
		install(t, proxy, bin, product+"/cmd/lameduck"+version)
		install(t, proxy, bin, product+"/cmd/lameduck-lint"+version)
		for program, want := range map[string]string{
			"lameduck":      "lameduck version " + release + ", a plain build (see docs/install.md)\n",
			"lameduck-lint": "lameduck-lint version " + release + "\n",
		} {
			said, err := exec.Command(filepath.Join(bin, program), "--version").CombinedOutput()
			if err != nil || string(said) != want {
				t.Errorf("%s: %s --version: %v, says %q; want %q", version, program, err, said, want)
			}
		}
	}
	said, err := exec.Command(filepath.Join(bin, "lameduck"), "--", "echo", "ran").CombinedOutput()
	if err != nil || string(said) != "ran\n" {
		t.Errorf("lameduck -- echo ran: %v, says %q", err, said)
	}
	said, err = exec.Command(filepath.Join(bin, "lameduck-lint"), root+"/docs/examples").CombinedOutput()
	if err != nil || len(said) > 0 {
		t.Errorf("lameduck-lint docs/examples: %v, says %q", err, said)
	}
}

// requiredRelease returns the release of the product that the linter's go.mod requires.
func requiredRelease(t *testing.T) string {
	t.Helper()
	return goSays(t, "list", "-m", "-f", "{{.Version}}", product)
}

// publish puts the module in dir into the folder of a module proxy; see
// https://go.dev/ref/mod#goproxy-protocol.
func publish(t *testing.T, proxy, path, version, dir string) {
	t.Helper()
	versions := filepath.Join(proxy, path, "@v")
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err == nil {
		err = os.MkdirAll(versions, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version": %q}`, version),
		version + ".mod":  string(gomod),
		version + ".zip":  archiveOf(t, dir, path+"@"+version),
	} {
		if err := os.WriteFile(filepath.Join(versions, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// archiveOf returns the module in dir as a zip file of which all names begin with prefix.
func archiveOf(t *testing.T, dir, prefix string) string {
	t.Helper()
	var text bytes.Buffer
	archive := zip.NewWriter(&text)
	for _, file := range moduleFiles(t, dir) {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, and not yet committed
		}
		w, createErr := archive.Create(prefix + "/" + file)
		if err := errors.Join(err, createErr); err != nil {
			t.Fatal(err)
		}
		w.Write(content)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// moduleFiles returns the files of the module in dir that git knows or would add, without
// the files of nested modules.
func moduleFiles(t *testing.T, dir string) []string {
	t.Helper()
	git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = dir
	out, err := git.Output()
	if err != nil {
		t.Skip("cannot list the files of the checkout: ", err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	var nested []string
	for _, file := range files {
		if folder, ok := strings.CutSuffix(file, "/go.mod"); ok {
			nested = append(nested, folder+"/")
		}
	}
	return slices.DeleteFunc(files, func(file string) bool {
		return slices.ContainsFunc(nested, func(folder string) bool { return strings.HasPrefix(file, folder) })
	})
}

// install runs go install with an empty module cache, which takes the two modules from proxy
// and their dependencies from the files of the ordinary module cache, or else from the
// ordinary proxies.
func install(t *testing.T, proxy, bin, path string) {
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
