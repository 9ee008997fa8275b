// Package pages runs the README, CONTRIBUTING and docs/*.md. The module is not the
// product's, so that Kubernetes' and Nomad's types never reach the product.
//
// Every block of code is covered by the rule for the block's language, or stands in
// plain. Commands for an orchestrator go to lameduck --explain; commands for the reader
// are typed into a shell in namespaces of its own.
package pages

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/docs/check/internal/program"
)

const root = "../../.."

// bin is a folder with lameduck, built as releases are built, under all names, and with
// myserver, a server that ignores no signal and catches none.
var bin string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "myserver" {
		serve(os.Args[1])
	}
	program.Run(m, root, func(dir string) error {
		bin = dir
		self, err := os.Executable()
		if err != nil {
			return err
		}
		links := map[string]string{"myserver": self}
		for _, name := range dropins {
			links[name] = "lameduck"
		}
		for name, target := range links {
			if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// serve is myserver: prints ready and the address, and reads all bytes.
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

// rules are the checks of blocks, by language. An indented block has the language "".
var rules = map[string]func(t *testing.T, text string){
	"":           commands,
	"console":    console,
	"yaml":       manifest,
	"Dockerfile": dockerfile,
	"ini":        unit,
	"hcl":        nomad,
	"json":       ecs,
	"query":      query,
}

// plain are the blocks without a rule, by a line of the block, and the reason.
var plain = map[string]string{
	`{"schema":1,"time":"2026`: "a line of the report, which a test of the report holds",
}

func TestBlocks(t *testing.T) {
	used := map[string]bool{}
	for _, p := range pages(t) {
		if p.path == "docs/lint.md" {
			continue // wrong on purpose; the linter's tests cover the page
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
			t.Errorf("no block has %q (%s)", line, reason)
		}
	}
}

// excused returns the line of plain that text contains, or "".
func excused(text string) string {
	for line := range plain {
		if strings.Contains(text, line) {
			return line
		}
	}
	return ""
}
