package truth

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
)

// clientEnd is the clients' end of the link. They have addresses of their own behind it, as behind
// a router: after a client has vanished no ARP request fails, and no RST answers.
const clientEnd = "10.9.0.1"

const (
	upstream  = clientEnd + ":9000"
	ingress   = clientEnd + ":8090"
	netDevice = "eth0" // the name on both ends, a veth's or a TUN device's
)

const mountProc = "mount --make-rprivate /\nmount -t proc proc /proc\n"

// launch starts the command under lameduck as PID 1 of new namespaces, behind a veth or
// the relay.
func (t *trial) launch(words []string) {
	serverEnd := peers.ServerEnd.String()
	script := "read network || true\n" + mountProc + read("stage.sh") + `exec "$@"`
	cmd := exec.Command("sh", append([]string{"-ec", script, "stage", serverEnd, clientEnd}, words...)...)
	cmd.Dir = t.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + t.dir,
		"LAB=" + must.Get(os.Readlink("/proc/self/exe")),
		"SHARED=" + filepath.Dir(t.dir), // by all trials
		"UPSTREAM=" + upstream,
	}
	t.server = peers.Start(cmd, t.output(), syscall.CLONE_NEWNET, func(s *peers.Server) {
		if t.c.remote {
			openRelay(s.Network, t.c.rtt/2)
		} else {
			must.Do(peers.Shell("ip link add $1 type veth peer name $1 netns $2", netDevice, fmt.Sprint(s.Process.Pid)))
		}
		must.Do(peers.Shell(read("stage.sh"), clientEnd, serverEnd))
		// All addresses of clients are local; see sessions.txt for those that vanish.
		must.Do(peers.Shell("ip route add local 10.8.0.0/16 dev lo"))
	})
}

// ready waits until the server listens, or has made the file "ready", and has removed the file
// "starting" if it has made one, and packets pass: without a connection, which the server
// would see.
func (t *trial) ready() {
	for end := time.Now().Add(startPatience); time.Now().Before(end); {
		if (t.has("ready") || t.listens()) && !t.has("starting") && reachable() {
			return
		}
		must.Be(t.sleep(10*ms), "the server has exited")
	}
	must.Be(false, "the server is not ready after %v", startPatience)
}

// has reports whether the server has made a file.
func (t *trial) has(name string) bool {
	_, err := os.Stat(filepath.Join(t.dir, name))
	return err == nil
}

// listening is a socket in the state LISTEN in a table of proc_pid_net(5).
var listening = regexp.MustCompile(fmt.Sprintf(`:%04X 0+:0000 0A `, peers.Port))

func (t *trial) listens() bool {
	tables := fmt.Sprintf("/proc/%d/net/tcp", t.server.Process.Pid)
	four, _ := os.ReadFile(tables)
	six, _ := os.ReadFile(tables + "6")
	return listening.Match(four) || listening.Match(six)
}

// reachable reports that a datagram to a closed port comes back as an ICMP message. A new
// veth drops packets until the kernel has noticed the carrier, seconds late on a busy
// machine.
func reachable() bool {
	conn, err := net.Dial("udp", peers.ServerEnd.String()+":9")
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(200 * ms))
	conn.Write([]byte("x"))
	_, err = conn.Read(make([]byte, 1))
	return errors.Is(err, syscall.ECONNREFUSED)
}

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
