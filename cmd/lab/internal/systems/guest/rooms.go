package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// rooms runs the test binaries /rooms/NAME/NAME.test, each in the directory of
// the package's testdata.
func rooms() error {
	dirs, err := filepath.Glob("/rooms/*")
	if err != nil {
		return err
	}
	if len(dirs) == 0 {
		return errors.New("no test binaries in /rooms")
	}
	failed := 0
	for _, dir := range dirs {
		cmd := exec.Command(filepath.Join(dir, filepath.Base(dir)+".test"), "-test.v")
		cmd.Dir = dir
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		verdict := "ok"
		if err := cmd.Run(); err != nil {
			verdict = err.Error()
			failed++
		}
		fmt.Printf("guest: %s: %s\n", filepath.Base(dir), verdict)
	}
	if failed > 0 {
		return fmt.Errorf("%d test binaries failed", failed)
	}
	return nil
}
