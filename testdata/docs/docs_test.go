// Package docs runs what the pages say: the README, CONTRIBUTING and docs/*.md. It is
// a module of its own, so that what it takes from Kubernetes and Nomad never reaches
// the product.
//
// Every block of code is covered by the rule for its language, or stands in plain.
// What a page would have an orchestrator run is given to lameduck --explain; what a
// reader would type is typed, into a shell in namespaces of its own.
package docs

import (
	"errors"
	"fmt"
	"io"
	"net"
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
	if filepath.Base(os.Args[0]) == "myserver" {
		serve(os.Args[1])
	}
	dir, err := os.MkdirTemp("", "docs")
	self, err2 := os.Executable()
	if err := errors.Join(err, err2); err != nil {
		panic(err)
	}
	bin = dir
	build := exec.Command("make", "-s", "-C", root, "build", "OUT="+filepath.Join(bin, "lameduck"))
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot build lameduck:", err)
		os.Exit(1)
	}
	names := map[string]string{"myserver": self}
	for _, name := range dropins {
		names[name] = "lameduck"
	}
	for name, program := range names {
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	os.RemoveAll(bin)
	os.Exit(code)
}

// serve is myserver: it says when it listens, and reads what comes.
func serve(address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready", listener.Addr())
	for {
		if conn, err := listener.Accept(); err == nil {
			go io.Copy(io.Discard, conn)
		}
	}
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
	"TERM, process gone":                        "what make demo prints, which CI runs",
	"|------- floor --------|--- . ---- . ----": "a drawing",
	`{"schema":1,"time":"2026`:                  "a line of the report, which a test of the report holds",
}

func TestBlocks(t *testing.T) {
	used := map[string]bool{}
	for _, p := range pages(t) {
		if p.path == "docs/lint.md" {
			continue // meant to be wrong; a test of cmd/lameduck-lint's holds it
		}
		for _, b := range p.blocks() {
			if line := excused(b.text); line != "" {
				if used[line] {
					t.Errorf("%s:%d: a second block has %q", p.path, b.line, line)
				}
				used[line] = true
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
