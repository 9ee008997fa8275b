package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocs: docs/lint.md lists the rules, and has the true findings for the example.
func TestDocs(t *testing.T) {
	path, _ := filepath.Abs(root + "/docs/lint.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table := "| --- | --- |\n"
	for _, r := range rules {
		table += "| `" + r.name + "` | " + r.says + " |\n"
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("no example")
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("web.yaml", example[1], 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := lint([]string{"web.yaml"}, nil, &out, &errs); code != exitFound || errs.Len() > 0 {
		t.Fatal(code, errs.String())
	}
	want := put(string(page), "(?s)\\| --- \\| --- \\|\n.*?\n\n", table+"\n")
	want = put(want, "(?s)```\n\\$ lameduck-lint web.yaml\n.*?```", "```\n$ lameduck-lint web.yaml\n"+out.String()+"```")
	switch {
	case want == string(page):
	case *update:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/lint.md is not what is so; write it with -update, and read the diff")
	}
}

// put replaces the first match of pattern by text.
func put(page, pattern, text string) string {
	at := regexp.MustCompile(pattern).FindStringIndex(page)
	if at == nil {
		return page + "no " + pattern
	}
	return page[:at[0]] + text + page[at[1]:]
}

// TestClean: no findings for the project's own manifests and Dockerfiles.
func TestClean(t *testing.T) {
	paths := []string{root + "/docs/examples/kubernetes"}
	for _, pattern := range []string{"/Dockerfile*", "/docs/examples/docker/*/Dockerfile*", "/docs/examples/kubernetes/patch/*.yaml"} {
		named, _ := filepath.Glob(root + pattern)
		paths = append(paths, named...)
	}
	var out, errs bytes.Buffer
	if code := lint(paths, nil, &out, &errs); code != exitClean {
		t.Errorf("%d\n%s%s", code, out.String(), errs.String())
	}
}

// TestNotInVain: with a shorter grace period, each manifest has a finding.
func TestNotInVain(t *testing.T) {
	manifests, _ := filepath.Glob(root + "/docs/examples/kubernetes/*.yaml")
	if len(manifests) < 5 {
		t.Fatalf("only %q", manifests)
	}
	for _, path := range manifests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		broken := bytes.Replace(text, []byte("terminationGracePeriodSeconds: 60"), []byte("terminationGracePeriodSeconds: 20"), 1)
		var out, errs bytes.Buffer
		if code := lint([]string{stdin}, bytes.NewReader(broken), &out, &errs); code != exitFound || !strings.Contains(out.String(), "[grace-") {
			t.Errorf("%s: %d\n%s%s", path, code, out.String(), errs.String())
		}
	}
}
