package hold_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// proxy passes on its clients' bytes to an upstream server, on connections that outlast the
// clients'.
func proxy(args []string) {
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:8080"))
	go func() {
		for {
			client := testutil.Must(l.Accept())
			server := testutil.Must(net.Dial("tcp", args[0]))
			go func() {
				io.Copy(server, client)
				client.Close()
			}()
			go io.Copy(client, server)
		}
	}()
	box.RunHelper("catch", nil)
}

// scopes are the faults for each way to tell the container's own listeners from the
// neighbors'.
var scopes = map[string]string{
	"descriptors":         "",
	"descriptors, nobody": "uid=65534",
	"cgroup":              "cgroup",
	"cgroup, nobody":      "cgroup,uid=65534",
}

// TestUntilPod: several containers in one network namespace, as in a pod, in each scope. The
// neighbors talk to each other throughout.
func TestUntilPod(t *testing.T) {
	for scope, faults := range scopes {
		for name, test := range map[string]func(t *testing.T, s box.Setup, neighbor *box.Box){
			"server": podServer, "worker": podWorker, "mesh": podMesh, "proxy": podProxy, "late port": podLatePort,
		} {
			t.Run(scope+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := box.Setup{Faults: faults, Network: box.NewNetwork(t)}
				if strings.HasPrefix(faults, "cgroup") {
					s.Faults = strings.Replace(faults, "cgroup", "cgroup="+newCgroup(t), 1)
				} else if own := ownCgroup(); own != "/" {
					t.Skipf("the containers of this test share the control group %q, by which lameduck tells containers apart", own)
				}
				one, other := s.Network.Neighbor(t), s.Network.Neighbor(t)
				one.Do("call " + other.Addr("127.0.0.1"))
				other.Do("call " + one.Addr("::1"))
				test(t, s, s.Network.Neighbor(t))
			})
		}
	}
}

// newCgroup makes a control group of version 2 below the test's own. Without that
// hierarchy newCgroup skips the test.
func newCgroup(t *testing.T) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
			return box.MakeCgroup(t, filepath.Join(root, ownCgroup()))
		}
	}
	t.Skip("no cgroup hierarchy of version 2")
	return ""
}

// ownCgroup returns the test's own control group in the hierarchy of version 2.
func ownCgroup() string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok && strings.TrimSpace(path) != "" {
			return strings.TrimSpace(path)
		}
	}
	return "/"
}

// podServer: traffic at other containers' ports does not hold, nor do outbound connections.
func podServer(t *testing.T, s box.Setup, neighbor *box.Box) {
	b := s.Catch(t, flags+"--until=drained", "127.0.0.1:0")
	b.Do("call " + neighbor.Addr("127.0.0.1"))
	b.ShortConn("127.0.0.1")
	r := b.WantHold(b.Trigger(), quiet, "drained")
	scope, _, _ := strings.Cut(strings.TrimPrefix(t.Name(), "TestUntilPod/"), "/")
	if scope, _, _ = strings.Cut(scope, ","); r.Scope != scope || r.Observer != "sock_diag" {
		t.Errorf("report %+v, want the scope %s", r, scope)
	}
}

// podWorker: a command without listeners gets TERM at once, however busy the neighbors are.
func podWorker(t *testing.T, s box.Setup, neighbor *box.Box) {
	b := s.Catch(t, flags+"--until=drained")
	b.Do("call " + neighbor.Addr("127.0.0.1")) // the command is only a client
	b.WantHold(b.Trigger(), 0, "no_listener")
}

// podMesh: a neighbor's connections to the container's port count, although they come over
// loopback.
func podMesh(t *testing.T, s box.Setup, mesh *box.Box) {
	b := s.Catch(t, flags+"--until=quiet", "[::]:0")
	b.Trigger()
	last := b.Busy(quiet, 300*time.Millisecond, func() { mesh.Send("open " + b.Addr("127.0.0.6")) })
	b.WantHold(last, quiet-early, "quiet")
}

// podProxy: a proxy's hold lasts until the app in the other container has closed its
// connections. The proxy's own connections to other servers do not count.
func podProxy(t *testing.T, s box.Setup, app *box.Box) {
	database := s.Network.Neighbor(t)
	b := s.Boot(t, flags+"--until=drained", box.Helper("proxy", database.Addr("127.0.0.1"))...)
	b.Ready()
	app.Do("open 127.0.0.1:8080")
	b.Trigger()
	time.Sleep(2 * quiet) // an idle connection, for longer than --quiet-for
	b.WantHolding("the app was connected")
	app.Do("shut")
	if r := b.WantHold(time.Now(), 0, "drained"); r.Open != 0 {
		t.Errorf("report %+v, want no open connection", r)
	}
}

// podLatePort: a port that the server opens during the hold counts from then on, for new
// connections and for a request in flight. The server's first port may be closed before and
// with a request in flight.
func podLatePort(t *testing.T, s box.Setup, _ *box.Box) {
	b := s.Catch(t, flags+"--until=quiet --log-level=debug", "127.0.0.1:7070") // a port that is no client's
	c := b.Dial("127.0.0.1")
	c.Ask("hello")
	fmt.Fprintln(c, "wait")
	b.Out.Wait("waits")
	b.Do("close")
	b.Trigger()
	b.Err.Wait("sample busy")
	b.Do("listen 127.0.0.1:7071")
	b.Port = "7071"
	samples := strings.Count(strings.Join(b.Err.Texts(), "\n"), "sample busy")
	b.Err.WaitNth(samples+2, "sample busy") // by now the port is found
	b.Do("reply")
	c.AwaitReply()
	shorts(b, "127.0.0.1")
	late := b.Dial("127.0.0.1")
	late.Ask("hello")
	fmt.Fprintln(late, "wait")
	time.Sleep(2 * quiet) // the request is in flight for longer than --quiet-for
	b.WantHolding("a request on the late port was in flight")
	b.Do("reply")
	late.AwaitReply()
	if r := b.WantHold(time.Now(), quiet-early, "quiet"); !slices.Equal(r.NewPorts, []uint16{7071}) {
		t.Errorf("report %+v, want the new port 7071", r)
	}
}

// TestUntilItself: the container's connections to itself do not hold, even from a process
// that entered the container later. Connections shorter than a sample do, such as those of an
// exec probe, unless their peer is left out: they could be of any process.
func TestUntilItself(t *testing.T) {
	for _, c := range box.Table(`
		case                      | talk | by   | when  | flags                     | hold | reason
		before                    | talk |      |       |                           | 1s   | quiet
		later                     | talk |      | later |                           | 1s   | quiet
		by exec                   | talk | exec |       |                           | 1s   | quiet
		by exec, later            | talk | exec | later |                           | 1s   | quiet
		short ones                | call |      |       |                           | 4s   | ceiling
		short ones by exec        | call | exec |       |                           | 4s   | ceiling
		short ones of peers named | call | exec | later | --ignore-peer=127.0.0.0/8 | 1s   | quiet
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			n := box.NewNetwork(t)
			b := box.Setup{Network: n}.Catch(t, flags+"--until=quiet --max-delay=4 --log-level=debug "+c["flags"],
				"127.0.0.1:0")
			by := b
			if c["by"] == "exec" { // as an exec health check does
				box.Needs(t, "nsenter")
				by = box.Setup{Outside: true}.Start(t, append([]string{"nsenter", "-t", strconv.Itoa(b.Pid()), "-p", "-m", "-n"},
					box.Helper("catch")...)...)
				by.Ready()
			}
			if c["when"] == "" {
				by.Do(c["talk"] + " " + b.Addr("127.0.0.1"))
			}
			start := b.Trigger()
			if c["when"] == "later" {
				b.Err.Wait("holding: sample")
				by.Do(c["talk"] + " " + b.Addr("127.0.0.1"))
			}
			b.WantHold(start, c.Time("hold"), c["reason"])
		})
	}
}
