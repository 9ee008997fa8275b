package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// inside is set in the lab that runs in namespaces of its own; its value is the
// folder for what it writes meanwhile.
const inside = "LAMEDUCK_LAB_INSIDE"

// enter starts this program again in new namespaces, as their PID 1: nothing
// touches the machine's network, and nothing outlives the lab.
func enter() error {
	dir, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "lameduck-lab-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // nginx's workers are somebody else
		return err
	}
	runtime.LockOSThread() // a parent-death signal goes by the thread
	cmd := again(dir, 0)
	if err = cmd.Start(); errors.Is(err, syscall.EPERM) {
		cmd = again(dir, syscall.CLONE_NEWUSER)
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("cannot make namespaces: %w", err)
	}
	passOn(cmd.Process)
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.RemoveAll(dir)
		os.Exit(max(exit.ExitCode(), 1)) // it has said why
	}
	return err
}

// passOn leaves every signal that ends us to the lab inside, which cleans up.
func passOn(p *os.Process) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range signals {
			p.Signal(s)
		}
	}()
}

func again(dir string, flags uintptr) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: flags | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	if flags&syscall.CLONE_NEWUSER != 0 {
		// Ourselves, with what it takes: a nginx that believed to be root would
		// want to become somebody, and there is nobody else.
		uid, gid := os.Getuid(), os.Getgid()
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}
	}
	return cmd
}

// room is the network that the balancers and the replicas share: a bridge in
// the lab's own namespace. Each replica hangs on it by a pair of veths.
type room struct {
	dir    string
	bridge netlink.Link
	exe    string
	used   atomic.Int32 // addresses; none is given out twice
	ports  atomic.Int32
}

var gateway = net.IPv4(10, 200, 0, 1)

func openRoom(dir string) (*room, error) {
	if err := ownProc(); err != nil {
		return nil, err
	}
	if err := up("lo", nil); err != nil {
		return nil, err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "lab"}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return nil, fmt.Errorf("cannot make a bridge: %w", err)
	}
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	r := &room{dir: dir, bridge: bridge, exe: exe}
	r.ports.Store(10000) // below those that the kernel chooses from
	if err := up("lab", gateway); err != nil {
		return nil, err
	}
	return r, askOften("lab")
}

// address is a new one for a replica.
func (r *room) address() (number int, ip net.IP) {
	n := int(r.used.Add(1))
	return n, net.IPv4(10, 200, byte(1+n/250), byte(1+n%250))
}

// connect puts the other end of a new pair into the namespace of pid.
func (r *room) connect(number, pid int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = fmt.Sprintf("r%d", number)
	attrs.MasterIndex = r.bridge.Attrs().Index
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("cannot make a pair of veths: %w", err)
	}
	return netlink.LinkSetUp(pair)
}

// up gives a link its address, if it has one, and brings it up.
func up(name string, ip net.IP) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("cannot find %q: %w", name, err)
	}
	if ip != nil {
		address := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(16, 32)}}
		if err := netlink.AddrAdd(link, address); err != nil {
			return fmt.Errorf("cannot give %q its address: %w", name, err)
		}
	}
	return netlink.LinkSetUp(link)
}

// askOften has arp(7) ask again soon for who has just come up.
func askOften(link string) error {
	return os.WriteFile("/proc/sys/net/ipv4/neigh/"+link+"/retrans_time_ms", []byte("20"), 0)
}

// ownProc mounts the proc(5) of this PID namespace, for this mount namespace.
func ownProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("cannot mount /proc: %w", err)
	}
	return nil
}
