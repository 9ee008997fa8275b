package truth

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	must.Write(t.terminationLog(), "")
	must.Do(os.Chmod(t.terminationLog(), 0o666)) // lameduck may be another user
	init := append([]string{filepath.Dir(t.dir) + "/lameduck", "--log-format=json",
		"--termination-log=" + t.terminationLog()}, t.c.Arguments()...)
	if t.c.Sleep > 0 {
		init = []string{"tini"}
	}
	host := ""
	if t.c.Lag > 0 {
		host = peers.ServerEnd.String()
	}
	t.server = t.start(t.dir, host, t.c.Server, append(init, "--")...)
	var connect func(network *os.File)
	if t.c.Remote {
		connect = func(network *os.File) { openRelay(network, t.c.RTT/2) }
	}
	t.server.Link(netDevice, clientEnd, peers.ServerEnd.String(), connect)
	stage.Shell(addresses, peers.ServerEnd.String())
	if t.c.Lag > 0 {
		server := t.c.Server
		if slices.Contains([]string{"nginx", "haproxy", "nghttpx"}, server[0]) {
			server = []string{"lab", "http"}
		}
		t.other = t.start(t.dir+"/other", clientEnd, server)
		t.other.Await(context.Background(), clientEnd, plays.Port)
		t.aim(peers.ServerEnd.String())
	} else {
		peers.ServeUpstream(upstream)
	}
	t.server.Await(context.Background(), peers.ServerEnd.String(), plays.Port)
}

// ingress starts nginx or haproxy in front of the server, or lets it go: "gone".
func (t *trial) ingress(word string) {
	dir := t.dir + "/ingress"
	if word == "gone" {
		must.Write(dir+"/gone", "")
	} else {
		t.start(dir, clientEnd, []string{"ingress", word})
	}
}

// start starts a server in a folder, on an address or on all: beside us, or under an init at the end of the link.
func (t *trial) start(dir, host string, server []string, init ...string) *stage.Program {
	must.Do(os.MkdirAll(dir, 0o755))
	peers.WriteCertificate(dir)
	programs := filepath.Dir(t.dir)
	shared, behind := programs, upstream
	words := append(init, peers.Script(server)...)
	if t.c.Lag > 0 {
		behind = fmt.Sprintf("%s:%d", clientEnd, plays.Port)
	}
	if t.c.Unprivileged {
		shared = t.dir
		must.Do(os.Chown(dir, 65534, 65534))
		words = append(strings.Fields("setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --inh-caps=-all"), words...)
	}
	command := stage.Init
	if init != nil {
		command = stage.Linked
	}
	cmd := command(context.Background(), words...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "HOME="+dir, "LAB="+programs+"/lab", "HOST="+host, "UPSTREAM="+behind, "SHARED="+shared,
		fmt.Sprintf("SERVER=%s:%d", peers.ServerEnd, plays.Port))
	return stage.Start(cmd)
}

// aim sends new connections of pools to a server. Programs read a file as in hosts(5).
func (t *trial) aim(host string) {
	t.moved.Store(host == clientEnd)
	next := t.dir + "/next"
	must.Write(next, host+" lab\n")
	must.Do(os.Rename(next, t.dir+"/target"))
}

// addresses makes all addresses of clients local; see sessions.txt for those that vanish. A
// forwarding namespace would answer for them.
const addresses = `
ip link set lo up
echo 0 >/proc/sys/net/ipv4/ip_forward
ip route add default via "$1"
ip route add local 10.8.0.0/16 dev lo`
