package procnet

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "helper-elsewhere" {
		elsewhere()
	}
	netns.Main(m, 0)
}

// elsewhere runs in a network namespace without sockets, prints "ready", and stays while
// standard input is open.
func elsewhere() {
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
