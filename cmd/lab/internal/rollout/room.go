package rollout

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"

	"github.com/vishvananda/netlink"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// room is the network of the balancers and the replicas: a bridge in the experiment's
// namespace. A pair of veths connects each replica.
type room struct {
	dir    string
	bridge netlink.Link
	exe    string
	used   atomic.Int32 // addresses; each is used once
	ports  atomic.Int32
}

var gateway = net.IPv4(10, 200, 0, 1)

func openRoom(dir string) (*room, error) {
	if err := netns.MountProc(); err != nil {
		return nil, err
	}
	if err := netns.LoopbackUp(); err != nil {
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
	r.ports.Store(10000) // below the ports that the kernel chooses
	if err := up("lab", gateway); err != nil {
		return nil, err
	}
	return r, askOften("lab")
}

// address returns a new address for a replica.
func (r *room) address() (number int, ip net.IP) {
	n := int(r.used.Add(1))
	return n, net.IPv4(10, 200, byte(1+n/250), byte(1+n%250))
}

// connect puts one end of a new pair of veths into the namespace of pid.
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

// up gives a link an address and brings the link up.
func up(name string, ip net.IP) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("cannot find %q: %w", name, err)
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(16, 32)}}
	if err := netlink.AddrAdd(link, address); err != nil {
		return fmt.Errorf("cannot give %q an address: %w", name, err)
	}
	return netlink.LinkSetUp(link)
}

// askOften has arp(7) ask again after 20 ms for an address that has just come up.
func askOften(link string) error {
	return os.WriteFile("/proc/sys/net/ipv4/neigh/"+link+"/retrans_time_ms", []byte("20"), 0)
}
