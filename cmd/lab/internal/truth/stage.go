package truth

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"

	"github.com/lameduck-init/lameduck/internal/plays"
)

// clientEnd is the clients' end of the link. They have addresses of their own behind it, as behind
// a router: after a client has vanished no ARP request fails, and no RST answers.
const clientEnd = "10.9.0.1"

const (
	upstream  = clientEnd + ":9000"
	ingress   = clientEnd + ":8090"
	netDevice = "eth0" // the name on both ends, a veth's or a TUN device's
)

// launch starts the command under lameduck as PID 1 of new namespaces, behind a veth or
// the relay.
func (t *trial) launch(words []string) {
	cmd := stage.Linked(context.Background(), words...)
	cmd.Dir = t.dir
	cmd.Env = append(cmd.Env, "HOME="+t.dir, "LAB="+must.Get(os.Readlink("/proc/self/exe")),
		"SHARED="+filepath.Dir(t.dir), // by all trials
		"UPSTREAM="+upstream)
	t.server = stage.Start(cmd)
	var connect func(network *os.File)
	if t.c.Remote {
		connect = func(network *os.File) { openRelay(network, t.c.RTT/2) }
	}
	t.server.Link(netDevice, clientEnd, peers.ServerEnd.String(), connect)
	must.Do(stage.Shell(addresses, peers.ServerEnd.String()))
	peers.ServeUpstream(upstream)
	t.server.Await(context.Background(), peers.ServerEnd.String(), plays.Port)
}

// addresses makes all addresses of clients local; see sessions.txt for those that vanish. A
// forwarding namespace would answer for them.
const addresses = `
ip link set lo up
echo 0 >/proc/sys/net/ipv4/ip_forward
ip route add default via "$1"
ip route add local 10.8.0.0/16 dev lo`

// inNetwork calls f on a thread in a network namespace.
func inNetwork(network *os.File, f func()) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		done <- must.Try(func() {
			must.Do(unix.Setns(int(network.Fd()), unix.CLONE_NEWNET))
			f()
		})
	}()
	return <-done
}
