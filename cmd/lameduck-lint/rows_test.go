package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/template"
)

// installer is an init container with lameduck.
const installer = `initContainers: [{name: lameduck, image: "ghcr.io/lameduck-init/lameduck:1", ` +
	`command: [/lameduck, install, /opt/lameduck], volumeMounts: [{name: init, mountPath: /opt/lameduck}]}]`

// row is a row of rows.txt.
type row struct {
	name, text, want string
	dockerfile       bool
}

// inFull returns the containers of a row with the fields of Kubernetes.
func inFull(text string) string {
	if !strings.Contains(text, "image: ") {
		text = "image: debian, " + text
	}
	for short, full := range map[string]string{
		`\bserves: (\d+)`: "ports: [{containerPort: $1}]",
		`\bsleeps: (\d+)`: "lifecycle: {preStop: {sleep: {seconds: $1}}}",
		`\bholds: \[`:     "command: [/lameduck, --until=quiet, --grace-period=60, ",
		`\bhook: (.*)`:    "lifecycle: {preStop: {exec: {command: $1}}}",
	} {
		text = regexp.MustCompile(short).ReplaceAllString(text, full)
	}
	return text
}

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
		switch pod = strings.TrimSpace(pod); pod {
		case "Dockerfile", "manifest":
		case "Deployment":
			text = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{" + inFull(text) + "}]}}}"
		default:
			pod = regexp.MustCompile(`^\d`).ReplaceAllString(pod, "terminationGracePeriodSeconds: $0")
			pod = strings.Replace(pod, "INIT", installer, 1)
			text = fmt.Sprintf("apiVersion: v1\nkind: Pod\nspec: {containers: [{%s}], %s}", inFull(text), pod)
		}
		list = append(list, row{name, text, strings.TrimSpace(rest[end+1:]), pod == "Dockerfile"})
	}
	return list
}

// inContext returns the stop of a Dockerfile beside the files of testdata/context.
func inContext(text []byte) ([]*stop, error) { return stopInDockerfile(text, "testdata/context") }

// stops returns the stops in a row.
func (r row) stops(t testing.TB) []*stop {
	read := stopsInManifest
	if r.dockerfile {
		read = inContext
	}
	stops, err := read([]byte(r.text))
	if err != nil {
		t.Errorf("%s: %v in\n%s", r.name, err, r.text)
	}
	return stops
}

// TestRows: each row has its findings.
func TestRows(t *testing.T) {
	for _, r := range rows(t) {
		var found []string
		for _, f := range judge(r.stops(t)) {
			found = append(found, fmt.Sprintf("%d: %s [%s] ", f.Line, f.Text, f.Rule))
		}
		want := regexp.MustCompile(`.*?\[[a-z-]+\] `).FindAllString(r.want+" ", -1)
		if !slices.EqualFunc(found, want, strings.HasSuffix) {
			t.Errorf("%s:\n%s\nwant\n%s", r.name, strings.Join(found, "\n"), r.want)
		}
	}
}

// TestTable: each block of rules.txt fits some row, none is behind another that fits wherever it does, and each field
// is there in some row.
func TestTable(t *testing.T) {
	counts, there := map[int]bool{}, map[string]bool{}
	for _, r := range rows(t) {
		for _, s := range r.stops(t) {
			for _, a := range s.subjects() {
				for i, e := range rules {
					for field := range e {
						for path := range strings.SplitSeq(strings.TrimPrefix(field, "not "), " or ") {
							if !there[path] && path[0] < 'a' {
								err := template.Must(template.New("").Parse("{{with ."+path+"}}{{end}}")).Execute(io.Discard, a)
								there[path] = err == nil
							}
						}
					}
					if !a.decided[e["name"]] && a.fit(e) {
						a.decided[e["name"]], counts[i] = true, true
					}
				}
			}
		}
	}
	for path, is := range there {
		if !is {
			t.Errorf("no row has the field %s", path)
		}
	}
	for i, e := range rules {
		if !counts[i] {
			t.Errorf("no row needs %v", e)
		}
	}
}

// TestBraces: the memory for a script grows with its length, whatever it consists of.
func TestBraces(t *testing.T) {
	for script := range strings.SplitSeq("{|echo {|{,|{..|$(|((|{ |( |a{b,|if {|`|${x:-|<(|x=(", "|") {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		parse(strings.Repeat(script, 20000), nil)
		runtime.ReadMemStats(&after)
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 100 {
			t.Errorf("%d MB for %d times %q", grown, 20000, script)
		}
	}
}
