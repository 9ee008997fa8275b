// Package docs runs what the pages say: the README, CONTRIBUTING and docs/*.md. It is
// a module of its own, so that what it takes from Kubernetes and Nomad never reaches
// the product.
//
// Every block of code is covered by the rule for its language, or stands in plain.
// What a page would have an orchestrator run is given to lameduck --explain; what a
// reader would type is typed, into a shell in namespaces of its own.
package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// bin is a folder with lameduck, built as it is shipped, under all its names, and with
// myserver, a server that does nothing about signals.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "docs")
	if err != nil {
		panic(err)
	}
	bin = dir
	for _, build := range []*exec.Cmd{
		exec.Command("make", "-s", "-C", root, "build", "OUT="+filepath.Join(bin, "lameduck")),
		exec.Command("go", "build", "-C", root, "-buildvcs=false", "-o", filepath.Join(bin, "myserver"), "./testdata/server"),
	} {
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "cannot run %v: %v\n", build, err)
			os.Exit(1)
		}
	}
	for _, name := range dropins {
		if err := os.Symlink("lameduck", filepath.Join(bin, name)); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	os.RemoveAll(bin)
	os.Exit(code)
}

// rules are what is done with a block, by its language. An indented block has none.
var rules = map[string]func(t *testing.T, text string){
	"":           commands,
	"console":    console,
	"yaml":       manifest,
	"Dockerfile": dockerfile,
	"ini":        unit,
	"hcl":        nomad,
	"json":       ecs,
}

// plain are the blocks that no rule is for, by a line of theirs, and why.
var plain = map[string]string{
	"bare            $ server":                  "what make demo prints, which CI runs",
	"|------- floor --------|--- . ---- . ----": "a drawing",
	`{"schema":1,`:                              "a line of the report, which a test of the report holds",
}

func TestBlocks(t *testing.T) {
	used := map[string]bool{}
	for _, p := range pages(t) {
		for _, b := range p.blocks() {
			if reason := excused(b.text); reason != "" {
				used[reason] = true
				continue
			}
			t.Run(fmt.Sprintf("%s:%d", p.path, b.line), func(t *testing.T) {
				rule := rules[b.language]
				if rule == nil {
					t.Fatalf("no rule for %q:\n%s", b.language, b.text)
				}
				t.Parallel()
				rule(t, b.text)
			})
		}
	}
	for line, reason := range plain {
		if !used[line] {
			t.Errorf("no block has %q (%s) any more", line, reason)
		}
	}
}

// excused is the line in plain that text has, if one is there.
func excused(text string) string {
	for line := range plain {
		if strings.Contains(text, line) {
			return line
		}
	}
	return ""
}
