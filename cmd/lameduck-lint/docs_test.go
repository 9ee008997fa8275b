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
		if line := "| `" + r["name"] + "` | " + r["finds"] + " |\n"; !strings.HasSuffix(table, line) {
			table += line
		}
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
	want = put(want, "(?s)```\n\\$ lameduck-lint web.yaml\n.*?```",
		"```\n$ lameduck-lint web.yaml\n"+out.String()+"```")
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
