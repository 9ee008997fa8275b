package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is one of the project's pages.
type page struct {
	path string // from the project's root
	text string
}

// pages returns the project's pages.
func pages(t *testing.T) (list []page) {
	t.Helper()
	users, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(users) == 0 {
		t.Fatalf("no pages in docs: %v", err)
	}
	contributors, err := filepath.Glob(root + "/docs/contributing/*.md")
	if err != nil || len(contributors) == 0 {
		t.Fatalf("no pages in docs/contributing: %v", err)
	}
	for _, path := range slices.Concat(users, contributors, []string{root + "/README.md", root + "/CONTRIBUTING.md"}) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		path, _ = filepath.Rel(root, path)
		list = append(list, page{path, string(text)})
	}
	return list
}

// block is code on a page.
type block struct {
	line     int
	language string
	text     string
}

// blocks returns the code between fences, and the code indented after an empty line.
func (p page) blocks() (list []block) {
	fenced, before := false, ""
	for i, line := range strings.Split(p.text, "\n") {
		code, indented := strings.CutPrefix(line, "    ")
		switch language, fence := strings.CutPrefix(line, "```"); {
		case fence && fenced:
			fenced = false
		case fence:
			fenced = true
			list = append(list, block{i + 1, language, ""})
		case fenced:
			list[len(list)-1].text += line + "\n"
		case indented && before == "":
			list = append(list, block{i + 1, "", code + "\n"})
		case indented && strings.HasPrefix(before, "    "):
			list[len(list)-1].text += code + "\n"
		}
		before = line
	}
	return list
}

// prose returns the page without blocks.
func (p page) prose() string {
	text := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(p.text, "")
	return regexp.MustCompile(`(?m)^    .*$`).ReplaceAllString(text, "")
}

// headings returns the anchors of a page as shown on the web: letters and digits, with
// hyphens for spaces.
func (p page) headings() map[string]bool {
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(p.prose(), -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(name, " ", "-")] = true
	}
	return anchors
}

var link = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)

// TestLinks: the target of each link exists.
func TestLinks(t *testing.T) {
	all := map[string]page{}
	for _, p := range pages(t) {
		all[p.path] = p
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
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %v", p.path, err)
			}
			if m[2] != "" && !all[target].headings()[m[2]] {
				t.Errorf("%s: %s has no heading %s", p.path, target, m[2])
			}
		}
	}
}

// TestIndex: docs/README.md links to each page for users.
func TestIndex(t *testing.T) {
	index, err := os.ReadFile(root + "/docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages(t) {
		name, inDocs := strings.CutPrefix(p.path, "docs/")
		if inDocs && name != "README.md" && !strings.Contains(name, "/") && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

// foreign are the flags of other programs on the pages.
var foreign = map[string]string{
	"--shutdown": "linkerd-await", "--max-graceful-termination-sec": "cluster-autoscaler",
	"--init": "podman and docker", "--init-path": "podman", "--stop-timeout": "podman and docker",
	"--single-child": "dumb-init", "--target": "kubectl", "--force": "kubectl", "--pid": "py-spy",
	"--reload": "uwsgi", "--die-on-term": "uwsgi", "--hook-master-start": "uwsgi", "--memory-file": "memcached",
	"--format": "lameduck-lint", "--from": "docker", "--builder": "docker",
}

// TestWords: every flag and variable on a page exists.
func TestWords(t *testing.T) {
	help, err := lameduck(nil, "--help-all").Output()
	if err != nil {
		t.Fatal(err)
	}
	negations := strings.ReplaceAll(string(help), "--[no-]", "--no-")
	known := strings.ReplaceAll(string(help), "--[no-]", "--") + negations + "--json LAMEDUCK_PID LAMEDUCK_SIGNAL --"
	for _, p := range pages(t) {
		for _, word := range regexp.MustCompile(`--[a-z][a-z-]*|LAMEDUCK_[A-Z_]+`).FindAllString(p.prose(), -1) {
			exists := regexp.MustCompile(regexp.QuoteMeta(word) + `([^A-Za-z_-]|$)`).MatchString(known)
			if !exists && foreign[word] == "" {
				t.Errorf("%s: unknown flag or variable %s", p.path, word)
			}
		}
	}
}
