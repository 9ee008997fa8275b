package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
