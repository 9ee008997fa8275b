// Package soak runs the product's tests of package e2e/soak, which are storms at random.
package soak

import (
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// Run soaks the lameduck of args. The output tells the seed of the course.
func Run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("lab soak [flags] LAMEDUCK", flag.ContinueOnError)
	length := f.Duration("for", 10*time.Minute, "the length of the soak")
	seed := f.String("seed", "", "what chooses the course")
	lameduck, err := stage.Parse(f, args)
	if err != nil {
		return err
	}
	words := []string{"test", "-C=../..", "-count=1", "-v", "-timeout=0", "-run=TestSoak", "./shim/internal/e2e/soak",
		"-for=" + length.String(), "-lameduck=" + lameduck}
	if *seed != "" {
		words = append(words, "-seed="+*seed)
	}
	cmd := exec.CommandContext(ctx, "go", words...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	return cmd.Run()
}
