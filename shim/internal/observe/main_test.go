package observe

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/netns"
)

// TestMain runs the tests in a network namespace of their own. As "helper look PORT" the
// test binary is the program that bench measures.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "helper" && os.Args[2] == "look" {
		looker(os.Args[3])
	}
	netns.Main(m, 0)
}

// patience is how long a test waits for a handshake.
const patience = 20 * time.Second

// eventually polls until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v, still not: %s", patience, what)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(99)
	}
}
