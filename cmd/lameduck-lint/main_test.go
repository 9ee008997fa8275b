package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what is found into the golden files")

// TestMain makes the test binary lameduck-lint as well.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lameduck-lint": main})
}

// TestScripts runs testdata/*.txtar: for each rule, files with findings, and near misses.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", UpdateScripts: *update})
}

// TestInterrupt: SIGINT ends the linter: package shim catches signals only from Stage on.
func TestInterrupt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"lameduck-lint", "-"}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer late.Stop()
	in.Write(make([]byte, 1<<18)) // more than a pipe holds: the linter is reading
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGINT {
		t.Errorf("%v", cmd.ProcessState)
	}
}

// root is the checkout.
const root = "../.."

// FuzzFiles: the linter ends for any file, and findings are on lines of the file.
func FuzzFiles(f *testing.F) {
	for _, text := range []string{
		"kind: List\nitems: &a [*a]", "&a\nkind: List\nitems: [*a]", "kind: Pod\nspec: &a {<<: *a}", "kind: Pod\nspec: {containers: [null, {command: [null], env: [null]}], initContainers: null}", "kind: Pod\nspec: {containers: 1, initContainers: x}",
		"kind: Pod\nspec: {containers: [{command: {}, args: /lameduck, env: [1, {name: LAMEDUCK_X}], lifecycle: [], readinessProbe: 5}]}",
		"kind: Pod\nspec: {containers: [{image: x, command: [tini, -p], lifecycle: {preStop: {exec: {command: [sh, -c]}}}}]}", "FROM x\nCMD", "FROM a AS a\nFROM a\nENTRYPOINT []\nCMD []",
	} {
		f.Add([]byte(text))
	}
	scripts, _ := filepath.Glob("testdata/*.txtar")
	for _, script := range scripts {
		archive, err := txtar.ParseFile(script)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, read := range []func([]byte) ([]finding, error){lintManifest, lintDockerfile} {
			found, _ := read(text)
			for _, finding := range found {
				if lines := bytes.Count(text, []byte("\n")) + 1; finding.Line < 1 || finding.Line > lines {
					t.Errorf("%v: there are %d lines", finding, lines)
				}
			}
		}
	})
}
