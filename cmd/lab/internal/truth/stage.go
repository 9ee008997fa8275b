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
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The addresses of both ends, and the port of every server. Clients have addresses of
// their own behind clientEnd, as behind a router: after a client has vanished no ARP
// request fails, and no RST answers.
var (
	clientEnd = net.IPv4(10, 9, 0, 1)
	serverEnd = net.IPv4(10, 9, 0, 2)
)

const (
	port         = 8080
	upstreamPort = 9000
	netDevice    = "eth0" // the name on both ends, a veth's or a TUN device's
)

// ip configures the network.
func ip(args ...string) error {
	text, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot run ip %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return nil
}

const mountProc = "mount --make-rprivate /\nmount -t proc proc /proc\n"

// launch starts the command under lameduck as PID 1 of new namespaces, behind a veth or
// the relay. Until the end of standard input, it waits for the network.
func (t *trial) launch(words []string) error {
	script := "read network || true\n" + mountProc + read("stage.sh") + `exec "$@"`
	args := []string{"-ec", script, "stage", serverEnd.String(), clientEnd.String()}
	t.cmd = exec.Command("sh", append(args, words...)...)
	t.cmd.Dir = t.dir
	t.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + t.dir,
		"LAB=" + must(os.Readlink("/proc/self/exe")),
		"SHARED=" + filepath.Dir(t.dir), // by all trials
	}
	t.cmd.Stdout, t.cmd.Stderr = &t.said, &t.said
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	stdin, err := t.cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	if err := t.cmd.Start(); err != nil {
		return fmt.Errorf("cannot make namespaces: %w", err)
	}
	go t.await()
	// The open file keeps the network after the last process, as a pod's lasts for a
	// while: late connections are refused and do not hang.
	t.network, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", t.cmd.Process.Pid))
	if err != nil {
		return err
	}
	if t.c.remote {
		err = openRelay(t.network, relayDelay)
	} else {
		err = ip("link", "add", netDevice, "type", "veth", "peer", "name", netDevice, "netns", fmt.Sprint(t.cmd.Process.Pid))
	}
	if err != nil {
		return err
	}
	here := exec.Command("sh", "-ec", read("stage.sh"), "stage", clientEnd.String(), serverEnd.String())
	text, err := here.CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot configure the network: %w: %s", err, text)
	}
	// All addresses of clients are local; see client.take for those that vanish.
	return ip("route", "add", "local", "10.8.0.0/16", "dev", "lo")
}

// await waits for the end of the server's PID 1.
func (t *trial) await() {
	t.cmd.Wait()
	close(t.gone)
}

// ready waits until the server listens, or has made the file "ready", and has removed the file
// "starting" if it has made one, and packets pass: without a connection, which the server
// would see.
func (t *trial) ready() error {
	for end := time.Now().Add(startPatience); time.Now().Before(end); time.Sleep(10 * ms) {
		if (t.has("ready") || t.listens()) && !t.has("starting") && reachable() {
			return nil
		}
		select {
		case <-t.gone:
			return fmt.Errorf("the server has exited:\n%s", &t.said)
		default:
		}
	}
	return fmt.Errorf("the server is not ready after %v:\n%s", startPatience, &t.said)
}

// has reports whether the server has made a file.
func (t *trial) has(name string) bool {
	_, err := os.Stat(filepath.Join(t.dir, name))
	return err == nil
}

// listening is a socket in the state LISTEN in a table of proc_pid_net(5).
var listening = regexp.MustCompile(fmt.Sprintf(`:%04X 0+:0000 0A `, port))

func (t *trial) listens() bool {
	tables := fmt.Sprintf("/proc/%d/net/tcp", t.cmd.Process.Pid)
	four, _ := os.ReadFile(tables)
	six, _ := os.ReadFile(tables + "6")
	return listening.Match(four) || listening.Match(six)
}

// reachable reports that a datagram to a closed port comes back as an ICMP message. A new
// veth drops packets until the kernel has noticed the carrier, seconds late on a busy
// machine.
func reachable() bool {
	conn, err := net.Dial("udp", net.JoinHostPort(serverEnd.String(), "9"))
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(200 * ms))
	conn.Write([]byte("x"))
	_, err = conn.Read(make([]byte, 1))
	return errors.Is(err, syscall.ECONNREFUSED)
}

// inServerNetwork calls f on a thread in the server's network namespace.
func inServerNetwork(network *os.File, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}
