package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim"
)

// TestExplainStartsNothing: --explain starts no program and creates no file.
func TestExplainStartsNothing(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	got := call(t, nil, "--explain", "--alive-file="+path("alive"), "--termination-log="+path("log"), "--on-stop=touch "+path("hook"), "--health=127.0.0.1:1", "--", "touch", path("command"))
	if list, _ := os.ReadDir(dir); got.code != 0 || len(list) > 0 {
		t.Errorf("left with %d, and made %v", got.code, list)
	}
}

// TestPresetTexts: each preset is explained on less than a screen, by all names, with the
// source.
func TestPresetTexts(t *testing.T) {
	list := call(t, nil, "presets")
	names := []string{shim.AutoPreset}
	for _, p := range shim.Presets() {
		names = append(append(names, p.Name), p.Aliases...)
	}
	for _, name := range names {
		got := call(t, nil, "presets", name)
		if got.code != 0 || got.errOut != "" || strings.Count(got.out, "\n") > 24 {
			t.Errorf("%s: %+v", name, got)
		}
		if name != "auto" && !strings.Contains(got.out, "\n  source    ") {
			t.Errorf("%s: no source in %s", name, got.out)
		}
		for line := range strings.Lines(got.out) {
			if len(line) > 81 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: a line of %d: %s", name, len(line), line)
			}
		}
		first, _, _ := strings.Cut(got.out, "\n")
		if !strings.Contains(first, name) || !strings.Contains("\n"+list.out, "\n"+strings.TrimSpace(strings.Split(first, ",")[0])+" ") {
			t.Errorf("%s is not listed, or is called %s", name, first)
		}
	}
	if strings.Count(list.out, "\n") > 30 {
		t.Errorf("the list is long:\n%s", list.out)
	}
}
