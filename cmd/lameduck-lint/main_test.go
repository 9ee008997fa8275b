package main

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what is found into the golden files")

// TestMain makes the test binary lameduck-lint as well.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lameduck-lint": main})
}

// scripts are of the command line, and of the forms of files.
var scripts = []string{"testdata/files.txtar", "testdata/program.txtar"}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Files: scripts, UpdateScripts: *update})
}

// faulty is a file of which the reader panics.
type faulty struct{}

func (faulty) Read([]byte) (int, error) { panic("faulty") }

// TestFault: a panic is the error of a file, and the other files are linted.
func TestFault(t *testing.T) {
	var out, errs strings.Builder
	code := lint([]string{stdin, "testdata/cut.Dockerfile"}, faulty{}, &out, &errs)
	want := "lameduck-lint: cannot lint -: a fault of lameduck-lint: faulty\n"
	if code != exitFailed || errs.String() != want || !strings.Contains(out.String(), "[cut-at-term]") {
		t.Error(code, out.String(), errs.String())
	}
}

// root is the checkout.
const root = "../.."

// FuzzFiles: the linter ends for any file, and findings are on lines of the file.
func FuzzFiles(f *testing.F) {
	for _, text := range []string{
		"kind: List\nitems: &a [*a]", "&a\nkind: List\nitems: [*a]", "kind: Pod\nspec: &a {<<: *a}",
		"kind: Pod\nspec: {containers: [null, {command: [null], env: [null]}], initContainers: null}",
		"kind: Pod\nspec: {containers: [{command: {}, args: /lameduck, env: [1, {name: LAMEDUCK_X}], lifecycle: []}]}",
		"kind: Pod\nspec: {containers: [{command: [/lameduck, -pauto, -d2, '-rQUIT:USR1', --on-stop=USR1, nginx]}]}",
		"FROM x\nCMD", "FROM a AS a\nFROM a\nENTRYPOINT []\nCMD []",
	} {
		f.Add([]byte(text))
	}
	for _, r := range rows(f) {
		f.Add([]byte(r.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, read := range []func([]byte) ([]*stop, error){stopsInManifest, inContext} {
			stops, _ := read(text)
			for _, finding := range judge(stops) {
				if lines := bytes.Count(text, []byte("\n")) + 1; finding.Line < 1 || finding.Line > lines {
					t.Errorf("%v: there are %d lines", finding, lines)
				}
			}
		}
	})
}
