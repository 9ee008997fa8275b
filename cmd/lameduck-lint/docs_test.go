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

// TestFired: each rule fires in a script, and no other rules do.
func TestFired(t *testing.T) {
	scripts, _ := filepath.Glob("testdata/*.txtar")
	fired := map[string]bool{}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m):\d+: .* \[([a-z-]+)\]$`).FindAllStringSubmatch(string(text), -1) {
			fired[m[1]] = true
		}
	}
	for _, r := range rules {
		if !fired[r.name] {
			t.Errorf("%s fires nowhere", r.name)
		}
		delete(fired, r.name)
	}
	if len(fired) > 0 {
		t.Errorf("no rules: %v", fired)
	}
}

// TestClean: no findings for the project's own manifests and Dockerfiles, nor for those in
// testdata/clean, which are as users write them.
func TestClean(t *testing.T) {
	paths := []string{root + "/docs/examples/kubernetes", root + "/Dockerfile", root + "/Dockerfile.example", root + "/Dockerfile.release", "testdata/clean"}
	patches, _ := filepath.Glob(root + "/docs/examples/kubernetes/patch/*.yaml") // without a kind: read only if named
	paths = append(paths, patches...)
	images, _ := filepath.Glob(root + "/docs/examples/docker/*/Dockerfile*")
	var out, errs bytes.Buffer
	if code := lint(append(paths, images...), nil, &out, &errs); code != exitClean {
		t.Errorf("%d\n%s%s", code, out.String(), errs.String())
	}
}

// TestNotInVain: with a shorter grace period, each manifest has a finding.
func TestNotInVain(t *testing.T) {
	manifests, _ := filepath.Glob(root + "/docs/examples/kubernetes/*.yaml")
	clean, _ := filepath.Glob("testdata/clean/*.[yj]*")
	manifests = append(manifests, clean...)
	if len(manifests) < 8 {
		t.Fatalf("only %q", manifests)
	}
	for _, path := range manifests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		broken := regexp.MustCompile(`(terminationGracePeriodSeconds"?: )(60|75|\*grace)`).ReplaceAllString(string(text), "${1}20")
		var out, errs bytes.Buffer
		if code := lint([]string{stdin}, strings.NewReader(broken), &out, &errs); code != exitFound || !strings.Contains(out.String(), "[grace-") {
			t.Errorf("%s: %d\n%s%s", path, code, out.String(), errs.String())
		}
	}
	example, err := os.ReadFile(root + "/Dockerfile.example")
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	broken := strings.Replace(string(example), "LAMEDUCK_PRESET=auto", "LAMEDUCK_PRESET=nginx\nSTOPSIGNAL USR1\nENV", 1)
	if code := lint([]string{stdin}, strings.NewReader(broken), &out, &errs); code != exitFound || !strings.Contains(out.String(), "[stop-signal]") {
		t.Errorf("Dockerfile.example: %d\n%s%s", code, out.String(), errs.String())
	}
}
