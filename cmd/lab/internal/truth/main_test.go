package truth

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// TestMain makes the test binary the laboratory too, with the programs of
// Roles.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "truth" {
		os.Exit(m.Run())
	}
	var err error
	if role := Roles[os.Args[2]]; role != nil {
		err = role(os.Args[3:])
	} else {
		err = Run(context.Background(), os.Args[2:], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}
