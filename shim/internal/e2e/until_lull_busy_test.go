package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLullNewConnections: requests on new connections are in flight, although each
// connection known from before has been answered. The signal is not sent at a lull.
func TestLullNewConnections(t *testing.T) {
	t.Parallel()
	g := bootGated(t, 2, "--delay=1", "--grace-period=30")
	g.awaitSearch() // no connection has come for a second
	end := repeatEvery(5*time.Millisecond, func() {
		fmt.Fprintln(g.dial("127.0.0.1"), "wait")
		g.sendLine("reply")
	})
	g.out.wait(t, "got TERM")
	end()
	r := g.final()
	if strings.Contains(r.Message, "at a lull") {
		t.Errorf("sent at a lull, though requests were in flight throughout: %s", r.Message)
	}
}
