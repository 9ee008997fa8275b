package soak

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

var dir string

// TestMain makes the test binary the programs of the soak too.
func TestMain(m *testing.M) {
	var err error
	if len(os.Args) > 2 && os.Args[1] == "soak" {
		err = Roles[os.Args[2]](os.Args[3:])
	} else {
		dir, err = stage.Enter(stage.All, false)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestFindsFaults: an init with a fault does not get through the soak.
func TestFindsFaults(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	for _, fault := range []string{"descriptors", "threads", "zombies", "memory", "wakeups"} {
		t.Run(fault, func(t *testing.T) {
			o := &options{length: 5 * time.Second, seed: 1, init: "bad:" + fault}
			if err := o.soak(t.Context(), dir, io.Discard); err == nil || !strings.HasPrefix(err.Error(), fault) {
				t.Errorf("error %v, want one about %s", err, fault)
			}
		})
	}
}
