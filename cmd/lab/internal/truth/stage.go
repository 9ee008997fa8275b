package truth

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
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
	link         = "eth0" // the name on both ends, a veth's or a TUN device's
)

// stage runs as PID 1 of the server's namespaces: stage waits for the network (the end of
// standard input) and becomes the command.
func stage(args []string) error {
	io.Copy(io.Discard, os.Stdin)
	if err := netns.MountProc(); err != nil {
		return err
	}
	if err := openEnd(serverEnd, clientEnd); err != nil {
		return err
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("cannot become %q: %w", path, syscall.Exec(path, args, os.Environ()))
}

// openEnd brings up lo and gives this end of the link its address, with a
// route through the other end.
func openEnd(own, other net.IP) error {
	// A forwarding client namespace would answer for clients that have vanished.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("0"), 0); err != nil {
		return fmt.Errorf("cannot turn off forwarding: %w", err)
	}
	if err := netns.LoopbackUp(); err != nil {
		return err
	}
	device, err := netlink.LinkByName(link)
	if err != nil {
		return fmt.Errorf("cannot find %q: %w", link, err)
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: own, Mask: net.CIDRMask(24, 32)}}
	if err := netlink.AddrAdd(device, address); err != nil {
		return fmt.Errorf("cannot give %q an address: %w", link, err)
	}
	if err := netlink.LinkSetUp(device); err != nil {
		return fmt.Errorf("cannot bring up %q: %w", link, err)
	}
	route := &netlink.Route{LinkIndex: device.Attrs().Index, Gw: other}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("cannot add a route: %w", err)
	}
	return nil
}

// launch starts the command under lameduck as PID 1 of new namespaces, behind a veth or
// the relay.
func (t *trial) launch(words []string) error {
	t.cmd = exec.Command("/proc/self/exe", append([]string{"truth", "stage"}, words...)...)
	t.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.dir}, t.c.server.env...)
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
		err = openVeth(t.cmd.Process.Pid)
	}
	if err != nil {
		return err
	}
	return openEnd(clientEnd, serverEnd)
}

func openVeth(pid int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = link
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: link, PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("cannot make a pair of veths: %w", err)
	}
	return nil
}

// await waits for the end of the server's PID 1.
func (t *trial) await() {
	t.cmd.Wait()
	close(t.gone)
}

// ready waits until a socket of the server listens on the port and packets pass, without a
// connection, which the server would see.
func (t *trial) ready() error {
	for end := time.Now().Add(startPatience); time.Now().Before(end); time.Sleep(10 * ms) {
		if t.isReady() && reachable() {
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

func (t *trial) isReady() bool {
	if t.c.server.noPort {
		_, err := os.Stat(t.dir + "/ready")
		return err == nil
	}
	return listens(t.cmd.Process.Pid, port)
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
