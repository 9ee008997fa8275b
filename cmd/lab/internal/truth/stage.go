package truth

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

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

// launch starts the server under lameduck, or tini, as PID 1 of new namespaces, behind a veth or the
// relay. Beside us it starts the upstream, or in a row with a lag another server, which is also the
// upstream.
func (t *trial) launch() {
	must.Do(os.WriteFile(t.terminationLog(), nil, 0o666))
	must.Do(os.Chmod(t.terminationLog(), 0o666))
	lameduck := []string{t.shared() + "/lameduck", "--log-format=json", "--termination-log=" + t.terminationLog()}
	init := append(lameduck, t.c.Arguments()...)
	if t.c.Sleep > 0 {
		init = []string{"tini"}
	}
	t.server = t.start(t.dir, "", stage.Linked, append(init, "--"), t.c.Server)
	var connect func(network *os.File)
	if t.c.Remote {
		connect = func(network *os.File) { openRelay(network, t.c.RTT/2) }
	}
	t.server.Link(netDevice, clientEnd, peers.ServerEnd.String(), connect)
	must.Do(stage.Shell(addresses, peers.ServerEnd.String()))
	if t.c.Lag > 0 {
		t.launchOther()
	} else {
		peers.ServeUpstream(upstream)
	}
	t.server.Await(context.Background(), peers.ServerEnd.String(), plays.Port)
}

func (t *trial) launchOther() {
	dir := t.dir + "/other"
	must.Do(os.Mkdir(dir, 0o755))
	server := t.c.Server
	if server[0] == "nginx" || server[0] == "haproxy" {
		server = []string{"lab", "http"}
	}
	beside := func(ctx context.Context, words ...string) *exec.Cmd { return stage.Init(ctx, false, words...) }
	t.other = t.start(dir, clientEnd, beside, nil, server)
	t.other.Await(context.Background(), clientEnd, plays.Port)
	t.aim(peers.ServerEnd.String())
}

// start starts a server in a folder, on an address or on all, with a command for PID 1 and its words.
func (t *trial) start(dir, host string, command func(context.Context, ...string) *exec.Cmd, init, server []string) *stage.Program {
	peers.WriteCertificate(dir)
	shared := t.shared()
	var user []string
	if t.c.Unprivileged {
		shared = t.dir
		must.Do(os.Chown(dir, nobody, nobody))
		user = strings.Fields("setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --inh-caps=-all")
	}
	cmd := command(context.Background(), slices.Concat(user, init, []string{"sh", "-ec", peers.Script(server[0])}, server)...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "HOME="+dir, "LAB="+t.shared()+"/lab", "SHARED="+shared, "HOST="+host, "UPSTREAM="+t.upstream())
	return stage.Start(cmd)
}

const nobody = 65534

// shared returns the folder of all trials, with the programs.
func (t *trial) shared() string { return filepath.Dir(t.dir) }

func (t *trial) upstream() string {
	if t.c.Lag > 0 {
		return fmt.Sprintf("%s:%d", clientEnd, plays.Port)
	}
	return upstream
}

// aim sends new connections of pools to a server. Programs read a file as in hosts(5).
func (t *trial) aim(host string) {
	t.moved.Store(host == clientEnd)
	next := t.dir + "/next"
	must.Do(os.WriteFile(next, []byte(host+" lab\n"), 0o644))
	must.Do(os.Rename(next, t.dir+"/target"))
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
