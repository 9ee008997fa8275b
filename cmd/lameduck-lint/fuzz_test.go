package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

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
