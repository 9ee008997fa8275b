package rollout

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// replica is a server under a contender: in a rollout PID 1 of namespaces of its own, and in
// the demo a process on the loopback interface.
type replica struct {
	*process
	slot    int       // in the balancer
	leaving bool      // removed from all nodes but the last
	stdin   io.Closer // a server on the loopback interface ends with its standard input
	// network keeps the network namespace after the last process, as the network of a pod
	// lasts for a while: late connections are refused and not left waiting.
	network *os.File
	watch   *watcher // nil: none
}

// inNamespaces becomes the server's command in namespaces. unshare(1) makes the network
// namespace: CLONE_NEWNET in clone(2) takes long while many namespaces are made and removed,
// and Go's runtime, and with it the load, would stand still meanwhile. The end of standard
// input says that the namespace has a network.
var inNamespaces = []string{"unshare", "--net", "--mount-proc", "sh", "-ec",
	`echo unshared; read -r network || true; exec "$@"`, "stage"}

// connect connects a replica's network namespace with the balancers'. Both ends are up before
// the first connection: the kernel repeats a question for an address, ARP, after a second.
const connect = `
	printf '%s\n' "link add $1 type veth peer name eth0 netns $2" "address add $3.1/24 dev $1" "link set $1 up" |
		ip -batch -
	printf '%s\n' "link set lo up" "address add $3.2/24 dev eth0" "link set eth0 up" |
		nsenter --net="/proc/$2/ns/net" ip -batch -`

// port is where every replica in namespaces serves, each at an address of its own.
const port = 8080

// start starts a replica and returns when the server accepts.
func (t *trial) start(ctx context.Context) *replica {
	if t.o.dir == "" {
		return t.launch(ctx, t.server.command("", "127.0.0.1:0"))
	}
	number := int(t.o.used.Add(1))
	dir := filepath.Join(t.o.dir, fmt.Sprintf("replica%d", number))
	must.Do(os.Mkdir(dir, 0o755))
	r := t.launch(ctx, t.server.command(dir, fmt.Sprintf(":%d", port)))
	network := fmt.Sprintf("10.%d.%d", 1+number/250, 1+number%250)
	r.wire(fmt.Sprintf("r%d", number), network)
	r.addr = fmt.Sprintf("%s.2:%d", network, port)
	r.await(ctx)
	return r
}

// launch starts a replica and returns when it has printed a line: its address on the loopback
// interface, and otherwise that its namespaces are there.
func (t *trial) launch(ctx context.Context, server []string) *replica {
	words := t.contender.command(t.o, t.server, server)
	if t.o.dir != "" {
		words = slices.Concat(inNamespaces, words)
	}
	r := &replica{process: newProcess(ctx, "", words...), slot: len(t.replicas) + 1}
	if t.o.dir != "" {
		r.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
	}
	r.stdin = must.Get(r.StdinPipe())
	stdout := must.Get(r.StdoutPipe())
	r.start()
	t.replicas = append(t.replicas, r)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		r.fail(err)
	}
	r.addr = strings.TrimSpace(line)
	return r
}

// wire connects the replica's network, and has the replica go on.
func (r *replica) wire(name, network string) {
	defer r.stdin.Close()
	pid := fmt.Sprint(r.Process.Pid)
	r.network = must.Get(os.Open("/proc/" + pid + "/ns/net"))
	text, err := exec.Command("sh", "-ec", connect, "connect", name, pid, network).CombinedOutput()
	must.Be(err == nil, "cannot connect a network: %w: %s", err, text)
}

// close ends the replica in any state, and its network. A server that remains on the loopback
// interface ends with its standard input.
func (r *replica) close() {
	r.stdin.Close()
	r.process.close()
	if r.watch != nil {
		r.watch.close()
		r.watch.out.Close()
	}
	r.network.Close() // without effect if nil
}

// probePeriod is the default period of Kubernetes.
const probePeriod = 10 * time.Second

// probe makes the kubelet's readiness probes until the replica is gone: a connection each, from
// the clients' address.
func (r *replica) probe(ctx context.Context, period time.Duration) {
	c := &load.Client{Addr: r.addr}
	for sleep(ctx, period) == nil && !r.hasGone() {
		c.HTTP("/0s", "", time.Now().Add(time.Second))
	}
}

// report has the figures of lameduck's lines; see docs/production.md.
type report struct {
	Message    string `json:"message"`
	Trigger    string `json:"trigger"`
	HeldMS     int64  `json:"held_ms"`
	Ended      string `json:"ended"`
	Lull       bool   `json:"lull"`
	FloorMS    int64  `json:"floor_ms"`
	CeilingMS  int64  `json:"ceiling_ms"`
	Accepted   int    `json:"accepted"`
	LastNewMS  int64  `json:"last_new_ms"`
	LastByteMS int64  `json:"last_byte_ms"`
	Sent       []struct {
		Signal string `json:"signal"`
		AtMS   int64  `json:"at_ms"`
	} `json:"sent"`
	ExitCode *int  `json:"exit_code"`
	UsedMS   int64 `json:"grace_used_ms"`
}

// reports returns lameduck's lines in a replica's standard error.
func reports(stderr string) (all []report) {
	for line := range strings.Lines(stderr) {
		var r report
		if json.Unmarshal([]byte(line), &r) == nil && r.Message != "" {
			all = append(all, r)
		}
	}
	return all
}

// report returns the report of the end of the hold.
func (s *stop) report() (found report) {
	for _, r := range s.Reports {
		if r.Ended != "" {
			found = r
		}
	}
	return found
}
