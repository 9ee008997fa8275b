// Package pages runs README.md, CONTRIBUTING.md and docs/*.md. Every block of code is
// covered by the rule for its language: a console block is typed into a shell in namespaces
// of its own, lameduck-lint reads the manifests and Dockerfiles, and the commands without
// output go to lameduck --explain.
package pages

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/docs/check/manifests"
)

const root = "../../.."

// TestMain builds lameduck and lameduck-lint, as releases have them. myserver beside them,
// this program by another name, is a server that ignores no signal and catches none.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "myserver" {
		serve(os.Args[1])
	}
	bin := must(os.MkdirTemp("", "pages"))
	build := exec.Command("sh", "-ec", `
		make -s -C ../../.. build OUT=$1/lameduck
		go build -C ../../../cmd/lameduck-lint -buildvcs=false -o $1/lameduck-lint .
		ln -s $2 $1/myserver`, "sh", bin, must(os.Executable()))
	build.Stderr = os.Stderr
	code := 1
	if err := build.Run(); err == nil {
		os.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		code = m.Run()
	}
	os.RemoveAll(bin)
	os.Exit(code)
}

// serve is myserver: prints ready and the address, and reads all bytes.
func serve(address string) {
	listener := must(net.Listen("tcp", address))
	fmt.Println("ready", listener.Addr())
	for {
		if conn, err := listener.Accept(); err == nil {
			go io.Copy(io.Discard, conn)
		}
	}
}

// page is one of the project's pages.
type page struct{ path, text string }

func pages(t *testing.T) (list []page) {
	t.Helper()
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "docs/*.md", "docs/contributing/*.md"} {
		paths, _ := filepath.Glob(root + "/" + pattern)
		if len(paths) == 0 {
			t.Fatalf("no %s", pattern)
		}
		for _, path := range paths {
			path, _ = filepath.Rel(root, path)
			list = append(list, page{path, read(path)})
		}
	}
	return list
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// read returns a file of the project.
func read(path string) string { return string(must(os.ReadFile(filepath.Join(root, path)))) }

// code is a block of code: between fences, with a language, or indented after an empty line.
var code = regexp.MustCompile("(?m)^```(.*)\n((?s:.*?))^```$|^\n((?:    .*\n)+)")

// prose returns the page without blocks.
func (p page) prose() string { return code.ReplaceAllString(p.text, "\n") }

// rules are the checks of blocks, by language. TestWords looks into all of them.
var rules = map[string]func(t *testing.T, text string){
	"":           commands,
	"console":    console,
	"yaml":       manifest,
	"Dockerfile": dockerfile,
	"json": func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			t.Error("no JSON")
		}
	},
	"query":  query,
	"ini":    nil,
	"js":     recipe,
	"go":     recipe,
	"python": recipe,
	"hcl":    nil,
}

func TestBlocks(t *testing.T) {
	for _, p := range pages(t) {
		if p.path == "docs/lint.md" {
			continue // wrong on purpose; the linter's tests cover the page
		}
		for i, m := range code.FindAllStringSubmatch(p.text, -1) {
			language, text := m[1], m[2]+regexp.MustCompile(`(?m)^    `).ReplaceAllString(m[3], "")
			t.Run(fmt.Sprintf("%s:%d", p.path, i+1), func(t *testing.T) {
				t.Parallel()
				rule, known := rules[language]
				if !known {
					t.Errorf("no rule for %q", language)
				}
				if rule != nil {
					rule(t, text)
				}
			})
		}
	}
}

// heads make whole objects of parts, by a field of the part. A part without these fields is
// a container's.
var heads = []struct{ field, head, indent string }{
	{"kind:", "", ""},
	{"spec:", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n", ""},
	{"containers:", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n", "  "},
	{"", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  -\n", "    "},
}

// manifest decodes a manifest of Kubernetes, or a part of one, and lints it.
func manifest(t *testing.T, text string) {
	if strings.HasPrefix(text, "services:") {
		return // of Compose
	}
	for _, h := range heads {
		if strings.Contains("\n"+text, "\n"+h.field) {
			text = h.head + regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSpace(text), h.indent)
			break
		}
	}
	if _, err := manifests.Decode([]byte(text)); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	lint(t, text)
}

func dockerfile(t *testing.T, text string) {
	if !strings.HasPrefix(text, "FROM ") {
		text = "FROM registry.example/base\n" + text
	}
	lint(t, text)
}

// lint runs lameduck-lint, which must find nothing.
func lint(t *testing.T, text string) {
	t.Helper()
	cmd := exec.Command("lameduck-lint", "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, text)
	}
}

// recipe checks that a server of the laboratory has each line, whose stops it measures.
func recipe(t *testing.T, text string) {
	const peers = "cmd/lab/internal/peers/"
	var served string
	for _, name := range []string{"server.go", "scripts/node.sh", "scripts/uvicorn.sh", "scripts/gunicorn.sh"} {
		served += read(peers + name)
	}
	for line := range strings.Lines(text) {
		if !strings.Contains(served, strings.TrimSpace(line)) {
			t.Errorf("no server has %q", line)
		}
	}
}

// query checks that the names in a query of a log are names of a report, or of what watch says.
func query(t *testing.T, text string) {
	reports := read("testdata/report.txt") + watched(t)
	for _, name := range regexp.MustCompile(`[a-z]+(_[a-z]+)+`).FindAllString(text, -1) {
		others := strings.HasSuffix(name, "_over_time") || strings.HasPrefix(name, "kube_")
		if !others && !strings.Contains(reports, `"`+name+`"`) {
			t.Errorf("the report has no %s", name)
		}
	}
}

var (
	link = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
	// ours are addresses of files in the project's repository.
	ours = regexp.MustCompile(`\.com/lameduck-init/lameduck/(?:main/)?((?:cmd|docs|\.github)/[\w./-]*\w)`)
)

// anchors returns the anchors of a page's headings: letters and digits, with hyphens for
// spaces.
func (p page) anchors() (list []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(p.prose(), -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(name, " ", "-"))
	}
	return list
}

// TestLinks: the target of each link exists, and docs/README.md links to each page for users.
func TestLinks(t *testing.T) {
	all := map[string]page{}
	for _, p := range pages(t) {
		all[p.path] = p
	}
	exists := func(p page, target string) {
		if _, err := os.Stat(filepath.Join(root, target)); err != nil {
			t.Errorf("%s: %v", p.path, err)
		}
	}
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(p.prose(), -1) {
			target := p.path
			if strings.Contains(m[1], "://") {
				t.Errorf("%s: %s leads out of the project", p.path, m[1])
				continue
			}
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(p.path), m[1])
			}
			exists(p, target)
			if m[2] != "" && !slices.Contains(all[target].anchors(), m[2]) {
				t.Errorf("%s: %s has no heading %s", p.path, target, m[2])
			}
		}
		for _, m := range ours.FindAllStringSubmatch(p.text, -1) {
			exists(p, m[1])
		}
		if dir, name := filepath.Split(p.path); dir == "docs/" && name != "README.md" &&
			!strings.Contains(all["docs/README.md"].text, "]("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

// foreign are the flags of other programs on the pages, those that --help-all does not list,
// and the misspelled ones.
const foreign = `
lameduck: --json --only-stops LAMEDUCK_PID LAMEDUCK_SIGNAL
linkerd-await: --shutdown
cluster-autoscaler: --max-graceful-termination-sec 
cloud-sql-proxy: --max-sigterm-delay
podman, docker: --init --init-path --stop-timeout --entrypoint --name --user --rm --from --builder --cap-drop --network --security-opt
Dockerfiles: --chmod --checksum
tini, dumb-init: --single-child --rewrite
kubectl: --target --force --patch-file --local --profile --image
servers: --reload --die-on-term --hook-master-start --memory-file --graceful-timeout --timeout-graceful-shutdown
lameduck-lint: --format
apt-get, apk, sha256sum: --no-install-recommends --allow-untrusted --check --ignore-missing
cosign, gh: --certificate-identity-regexp --certificate-oidc-issuer --bundle --repo
py-spy: --pid
misspelled: --dely --quite-for LAMEDUCK_DELAI LAMEDUCK_DELYA
`

// TestWords: every flag and variable on a page, blocks included, exists.
func TestWords(t *testing.T) {
	help := string(must(exec.Command("lameduck", "--help-all").Output()))
	help += strings.ReplaceAll(help, "[no-]", "no-") + strings.ReplaceAll(help, "[no-]", "")
	word := regexp.MustCompile(`--[a-z][a-z-]*|LAMEDUCK_[A-Z_]+`)
	known := word.FindAllString(help+foreign, -1)
	for _, p := range pages(t) {
		for _, found := range word.FindAllString(p.text, -1) {
			if !slices.Contains(known, found) {
				t.Errorf("%s: unknown flag or variable %s", p.path, found)
			}
		}
	}
}
