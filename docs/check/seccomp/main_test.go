package main

import (
	"bytes"
	"os"
	"testing"
)

// TestFiles: the files are those that the program makes.
func TestFiles(t *testing.T) {
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		got, err := os.ReadFile(folder + name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what go run -C docs/check/seccomp . makes: %v", name, err)
		}
	}
}
