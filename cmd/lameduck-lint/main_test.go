package main

import (
	"flag"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what is found into the golden files")

// TestMain makes the test binary lameduck-lint as well.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lameduck-lint": main})
}

// TestScripts runs testdata/*.txtar: for each rule, files with findings, and near misses.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", UpdateScripts: *update})
}

// TestInterrupt: SIGINT ends the linter, although package shim catches signals.
func TestInterrupt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"lameduck-lint", "-"}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer late.Stop()
	in.Write(make([]byte, 1<<18)) // more than a pipe holds: the linter is reading
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGINT {
		t.Errorf("%v", cmd.ProcessState)
	}
}

// root is the checkout.
const root = "../.."
