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

// elsewhere is a process in a network namespace without a socket; it says that
// it is ready, and stays while its standard input is open.
func elsewhere() {
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
