package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// installer is an init container with lameduck.
const installer = `initContainers: [{name: lameduck, image: "ghcr.io/lameduck-init/lameduck:1", ` +
	`command: [/lameduck, install, /opt/lameduck], volumeMounts: [{name: init, mountPath: /opt/lameduck}]}]`

// row is a row of rows.txt.
type row struct{ name, text, want string }

// rows reads rows.txt.
func rows(t testing.TB) (list []row) {
	t.Helper()
	table, err := os.ReadFile("testdata/rows.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(table), "\n    ", " ")) {
		name, rest, isRow := strings.Cut(line, " | ")
		pod, rest, _ := strings.Cut(rest, "| ")
		end := strings.LastIndex(rest, "|")
		if !isRow || line[0] == '#' || end < 0 {
			continue
		}
		text := strings.ReplaceAll(rest[:end], " ; ", "\n")
		if pod = strings.TrimSpace(pod); pod != "Dockerfile" && pod != "manifest" {
			if regexp.MustCompile(`^\d`).MatchString(pod) {
				pod = "terminationGracePeriodSeconds: " + pod
			}
			if !strings.Contains(text, "image: ") {
				text = "image: debian, " + text
			}
			if before, command, hasHook := strings.Cut(text, "hook: "); hasHook {
				text = before + "lifecycle: {preStop: {exec: {command: " + command + "}}}"
			}
			pod = strings.Replace(pod, "INIT", installer, 1)
			text = fmt.Sprintf("apiVersion: v1\nkind: Pod\nspec: {containers: [{%s}], %s}", text, pod)
		}
		list = append(list, row{name, text, strings.TrimSpace(rest[end+1:])})
	}
	return list
}

// inContext returns the findings for a Dockerfile beside the files of testdata/context.
func inContext(text []byte) ([]finding, error) {
	return lintDockerfile(text, os.DirFS("testdata/context"))
}

// found returns the findings in a row.
func (r row) found(t testing.TB) (list []string) {
	read := inContext
	if strings.Contains(r.text, "\nkind: ") {
		read = lintManifest
	}
	findings, err := read([]byte(r.text))
	if err != nil {
		t.Errorf("%s: %v in\n%s", r.name, err, r.text)
	}
	for _, f := range findings {
		list = append(list, fmt.Sprintf("%d: %s [%s]", f.Line, f.Text, f.Rule))
	}
	return list
}

// TestRows: each row has its findings, and each rule has some.
func TestRows(t *testing.T) {
	fired := map[string]bool{}
	for _, r := range rows(t) {
		found := r.found(t)
		want := regexp.MustCompile(`.*?\[[a-z-]+\](?: |$)`).FindAllString(r.want, -1)
		isWant := len(found) == len(want)
		for i := range min(len(found), len(want)) {
			isWant = isWant && strings.HasSuffix(found[i], strings.TrimSpace(want[i]))
			fired[found[i][strings.LastIndex(found[i], "["):]] = true
		}
		if !isWant {
			t.Errorf("%s:\n%s\nwant\n%s", r.name, strings.Join(found, "\n"), r.want)
		}
	}
	for _, r := range rules {
		if !fired["["+r.name+"]"] {
			t.Errorf("%s fires nowhere", r.name)
		}
	}
}
