package scope

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

var (
	errFD     = errors.New("descriptors cannot be read")
	errGroups = errors.New("groups cannot be listed")
	errTable  = errors.New("a table cannot be read")
)

// listener returns a listener on a port, whose inode is the port's number.
func listener(port uint16, cgroup uint64) tcp.Socket {
	return tcp.Socket{State: tcp.Listen, Local: any4(port), Inode: uint32(port), Cgroup: cgroup}
}

func any4(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), port) }

func inodes(numbers ...uint32) Inodes {
	set := Inodes{}
	for _, n := range numbers {
		set[n] = true
	}
	return set
}

func udp(ports ...uint16) (list []procfs.UDP) {
	for _, port := range ports {
		list = append(list, procfs.UDP{Local: any4(port), Inode: uint32(port)})
	}
	return list
}

// neighborhood returns listeners, each twice, and a connection to each: 80 in our group 50,
// 81 in the group 51 below, 82 and 83 in neighbors' groups.
func neighborhood() (list []tcp.Socket) {
	for _, l := range []tcp.Socket{listener(82, 60), listener(80, 50), listener(81, 51), listener(83, 61)} {
		c := l
		c.State, c.Local = tcp.Established, any4(l.Local.Port()+1000)
		list = append(list, l, l, c)
	}
	return list
}

var (
	around = neighborhood()
	ours   = CgroupIDs{Own: 50, Below: []uint64{51}}
	unseen = Sockets{Inodes: Inodes{}, Err: errFD}
	range7 = procfs.PortRange{First: 700, Last: 799}
)

// decisions are facts, and the scope that Decide makes of the facts.
var decisions = []struct {
	name  string
	facts Facts

	method   Method
	ports    Ports
	udp      Ports
	unix     []string
	unseen   []string
	doubtful bool // not Complete
	why      error
	none     bool // NoListener
}{
	{name: "nothing at all", method: Descriptors, none: true},
	{name: "ports given", facts: Facts{Given: []uint16{9, 7, 9}, Listeners: around, Cgroups: ours, Held: unseen},
		method: Given, ports: Ports{7, 9}},
	{name: "ports given, nothing else known", facts: Facts{Given: []uint16{9}, Held: unseen, Err: errTable},
		method: Given, ports: Ports{9}, doubtful: true, why: errTable},

	{name: "cgroup", facts: Facts{Listeners: around, Cgroups: ours},
		method: Cgroup, ports: Ports{80, 81}},
	{name: "cgroup, descriptors not readable", facts: Facts{Listeners: around, Cgroups: ours, Held: unseen},
		method: Cgroup, ports: Ports{80, 81}},
	{name: "cgroup, and a listener that was handed to us", facts: Facts{Listeners: around, Cgroups: ours, Held: Sockets{Inodes: inodes(83)}},
		method: Cgroup, ports: Ports{80, 81, 83}},
	{name: "cgroup, and one of the descriptors that could be read", facts: Facts{Listeners: around, Cgroups: ours, Held: Sockets{Inodes: inodes(83), Err: errFD}},
		method: Cgroup, ports: Ports{80, 81, 83}},
	{name: "cgroup, those below not listed", facts: Facts{Listeners: around, Cgroups: CgroupIDs{Own: 50, Err: errGroups}, Held: Sockets{Inodes: inodes(81)}},
		method: Cgroup, ports: Ports{80, 81}},
	{name: "cgroup, those below not listed, descriptors not readable", facts: Facts{Listeners: around, Cgroups: CgroupIDs{Own: 50, Err: errGroups}, Held: unseen},
		method: Namespace, ports: Ports{80, 81, 82, 83}, why: errFD},
	{name: "cgroup, no listener of ours", facts: Facts{Listeners: around, Cgroups: CgroupIDs{Own: 70}},
		method: Cgroup, none: true},
	{name: "cgroup, no listener of ours, descriptors not readable, no other sockets around", facts: Facts{Listeners: around, Cgroups: CgroupIDs{Own: 70}, Held: unseen},
		method: Cgroup, none: true},
	{name: "cgroup, no listener of ours, descriptors not readable, whose UDP?", facts: Facts{Listeners: around, UDP: udp(53), Cgroups: CgroupIDs{Own: 70}, Held: unseen},
		method: Cgroup, udp: Ports{53}, why: errFD},

	{name: "cgroup, the listeners' not told", facts: Facts{Listeners: []tcp.Socket{listener(82, 60), listener(80, 0)}, Cgroups: ours, Held: Sockets{Inodes: inodes(80)}},
		method: Descriptors, ports: Ports{80}},
	{name: "cgroup, the listeners' not told, descriptors not readable", facts: Facts{Listeners: []tcp.Socket{listener(82, 60), listener(80, 0)}, Cgroups: ours, Held: unseen},
		method: Namespace, ports: Ports{80, 82}, why: errFD},

	{name: "cgroup version 1", facts: Facts{Listeners: []tcp.Socket{listener(80, 1), listener(81, 1)}, Cgroups: CgroupIDs{Own: 1}, Held: Sockets{Inodes: inodes(81)}},
		method: Descriptors, ports: Ports{81}},
	{name: "descriptors", facts: Facts{Listeners: around, Held: Sockets{Inodes: inodes(83, 80, 4)}},
		method: Descriptors, ports: Ports{80, 83}},
	{name: "descriptors, no listener of ours", facts: Facts{Listeners: around, Held: Sockets{Inodes: inodes(4)}},
		method: Descriptors, none: true},
	{name: "descriptors, a table not readable", facts: Facts{Held: Sockets{Inodes: inodes(4)}, Err: errTable},
		method: Descriptors, doubtful: true, why: errTable},
	{name: "a listener without an inode is nobody's", facts: Facts{Listeners: []tcp.Socket{listener(0, 0)}, Held: Sockets{Inodes: inodes(0)}},
		method: Descriptors, none: true},

	{name: "listeners closed, connections open", facts: Facts{Connections: []tcp.Socket{listener(80, 0), listener(81, 0), listener(750, 0), listener(82, 0)}, Shim: inodes(82), Ephemeral: range7, Held: Sockets{Inodes: inodes(80, 750)}},
		method: Descriptors, ports: Ports{80}},
	{name: "listeners closed, connections of our cgroup", facts: Facts{Connections: []tcp.Socket{listener(80, 50), listener(81, 51), listener(82, 60)}, Cgroups: ours, Ephemeral: range7, Held: unseen},
		method: Cgroup, ports: Ports{80, 81}},
	{name: "listeners closed, connections of the namespace", facts: Facts{Connections: []tcp.Socket{listener(80, 0), listener(750, 0)}, Ephemeral: range7, Held: unseen},
		method: Namespace, ports: Ports{80}, why: errFD},
	{name: "listeners closed, the range not known", facts: Facts{Connections: []tcp.Socket{listener(80, 0)}, Held: Sockets{Inodes: inodes(80)}},
		method: Descriptors, none: true},
	{name: "a listener, other connections", facts: Facts{Listeners: around, Connections: []tcp.Socket{listener(90, 0)}, Ephemeral: range7, Held: Sockets{Inodes: inodes(80, 90)}},
		method: Descriptors, ports: Ports{80}},
	{name: "connections to the outside", facts: Facts{Connections: []tcp.Socket{listener(750, 0)}, Ephemeral: range7, Held: Sockets{Inodes: inodes(750)}},
		method: Descriptors, none: true},

	{name: "namespace", facts: Facts{Listeners: around, Held: unseen},
		method: Namespace, ports: Ports{80, 81, 82, 83}, why: errFD},
	{name: "namespace, version 1", facts: Facts{Listeners: around, Cgroups: CgroupIDs{Own: 1}, Held: unseen},
		method: Namespace, ports: Ports{80, 81, 82, 83}, why: errFD},
	{name: "namespace, nobody listens in it", facts: Facts{Held: unseen},
		method: Namespace, why: errFD, none: true},
	{name: "namespace, a table not readable", facts: Facts{Held: unseen, Err: errTable},
		method: Namespace, doubtful: true, why: errTable},

	{name: "lameduck's own", facts: Facts{Listeners: around, UDP: udp(53), Unix: []procfs.Unix{{Inode: 3, Path: "/a"}}, Cgroups: ours, Shim: inodes(80, 53, 3), Held: unseen},
		method: Cgroup, ports: Ports{81}},
	{name: "lameduck's own in a namespace", facts: Facts{Listeners: around, Shim: inodes(80), Held: unseen},
		method: Namespace, ports: Ports{81, 82, 83}, why: errFD},

	{name: "UDP", facts: Facts{UDP: udp(700, 53, 699, 53, 54, 800), Ephemeral: range7, Held: Sockets{Inodes: inodes(53, 699, 700)}},
		method: Descriptors, udp: Ports{53, 699}},
	{name: "UDP on an ephemeral port alone", facts: Facts{UDP: udp(700, 701), Ephemeral: range7, Held: Sockets{Inodes: inodes(700)}},
		method: Descriptors, udp: Ports{700}},
	{name: "UDP on an ephemeral port, beside TCP", facts: Facts{Listeners: around, UDP: udp(700), Ephemeral: range7, Held: Sockets{Inodes: inodes(80, 700)}},
		method: Descriptors, ports: Ports{80}},
	{name: "UDP on an ephemeral port, beside Unix", facts: Facts{UDP: udp(700), Unix: []procfs.Unix{{Inode: 5, Path: "@b"}}, Ephemeral: range7, Held: Sockets{Inodes: inodes(5, 700)}},
		method: Descriptors, unix: []string{"@b"}},
	{name: "UDP on an ephemeral port of a neighbor", facts: Facts{UDP: udp(700), Ephemeral: range7, Held: Sockets{Inodes: inodes(4)}},
		method: Descriptors, none: true},
	{name: "UDP, the range not known", facts: Facts{UDP: udp(700), Held: Sockets{Inodes: inodes(700)}},
		method: Descriptors, udp: Ports{700}},
	{name: "UDP, descriptors not readable", facts: Facts{UDP: udp(700, 53), Ephemeral: range7, Held: unseen},
		method: Namespace, udp: Ports{53}, why: errFD},
	{name: "Unix", facts: Facts{Unix: []procfs.Unix{{Inode: 5, Path: "/b"}, {Inode: 6, Path: "/c"}, {Inode: 7, Path: "a"}, {Inode: 8, Path: "/b"}}, Held: Sockets{Inodes: inodes(5, 7, 8)}},
		method: Descriptors, unix: []string{"/b", "a"}},
	{name: "vsock", facts: Facts{Unseen: []string{"vsock sockets"}},
		method: Descriptors, unseen: []string{"vsock sockets"}},
	{name: "Unix, cgroup, descriptors not readable", facts: Facts{Unix: []procfs.Unix{{Inode: 5, Path: "/b"}}, Cgroups: ours, Held: unseen},
		method: Cgroup, unix: []string{"/b"}, why: errFD},
}

func TestDecide(t *testing.T) {
	for _, c := range decisions {
		t.Run(c.name, func(t *testing.T) {
			s := Decide(c.facts)
			if s.Method != c.method || !slices.Equal(s.Ports, c.ports) || !slices.Equal(s.UDP, c.udp) || !slices.Equal(s.Unix, c.unix) || !slices.Equal(s.Unseen, c.unseen) {
				t.Errorf("got %v, TCP %v, UDP %v, Unix %v, unseen %v", s.Method, s.Ports, s.UDP, s.Unix, s.Unseen)
			}
			if s.Complete == c.doubtful || s.Why != c.why || s.NoListener() != c.none {
				t.Errorf("got complete %v, because of %v; no listener %v", s.Complete, s.Why, s.NoListener())
			}
		})
	}
}

// TestNeverNone: whichever facts are missing, in all combinations, a listener of ours is in
// the lists, or the scope is not complete.
func TestNeverNone(t *testing.T) {
	for bits := range 1 << 6 {
		on := func(bit int) bool { return bits>>bit&1 == 1 }
		f := Facts{Listeners: []tcp.Socket{listener(81, 51)}, Cgroups: CgroupIDs{Own: 50, Below: []uint64{51}}, Held: Sockets{Inodes: inodes(81)}}
		if on(0) {
			f.Listeners, f.Err = nil, errTable
		}
		if on(1) {
			f.Cgroups.Below, f.Cgroups.Err = nil, errGroups
		}
		if on(2) {
			f.Cgroups = CgroupIDs{Own: 1}
		}
		if on(3) {
			f.Held = Sockets{Err: errFD}
		}
		if on(4) {
			f.Listeners = append(f.Listeners, listener(90, 60))
		}
		if on(5) && !on(0) {
			f.Listeners[0].Cgroup = 0 // as procfs has it
		}
		if s := Decide(f); s.NoListener() || s.Complete && !s.Ports.Has(81) {
			t.Errorf("%06b: %+v", bits, s)
		}
	}
}

func TestOwns(t *testing.T) {
	socket := func(inode uint32, cgroup uint64) *tcp.Socket {
		return &tcp.Socket{State: tcp.Established, Inode: inode, Cgroup: cgroup}
	}
	facts := Facts{Given: []uint16{80}, Cgroups: CgroupIDs{Own: 50, Below: []uint64{51}}, Held: Sockets{Inodes: inodes(7)}, Shim: inodes(8)}
	s := Decide(facts)
	for _, c := range []struct {
		name   string
		socket *tcp.Socket
		want   bool
	}{
		{"our group", socket(0, 50), true},
		{"a group below", socket(0, 51), true},
		{"a descriptor of ours", socket(7, 60), true},
		{"lameduck's own", socket(8, 0), true},
		{"a neighbor", socket(9, 60), false},
		{"nobody", socket(0, 0), false},
	} {
		if got := s.Owns(c.socket); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	late := socket(9, 0)
	s.Learn(inodes(9))
	if !s.Owns(late) {
		t.Error("what was learnt is not known")
	}
	if facts.Held.Inodes.Has(9) {
		t.Error("the facts were changed")
	}
	var zero Scope
	zero.Learn(inodes(9))
	if !zero.Owns(late) || zero.NoListener() {
		t.Error("the zero scope")
	}
	if root := Decide(Facts{Cgroups: CgroupIDs{Own: 1}}); root.Owns(socket(0, 1)) {
		t.Error("the root group is nobody's")
	}
}

// TestExtend: ports found later are added once, and so are the groups and sockets by which
// connections to ourselves are known.
func TestExtend(t *testing.T) {
	s := Decide(Facts{Listeners: around, Cgroups: ours})
	later := Decide(Facts{Listeners: []tcp.Socket{listener(80, 50), listener(70, 50), listener(90, 52), listener(91, 60), listener(92, 60)},
		Cgroups: CgroupIDs{Own: 50, Below: []uint64{51, 52}}, Held: Sockets{Inodes: inodes(92)}})
	for _, want := range []Ports{{70, 90, 92}, nil} {
		if added := s.Extend(&later); !slices.Equal(added, want) || !slices.Equal(s.Ports, Ports{70, 80, 81, 90, 92}) {
			t.Errorf("added %v, now %v", added, s.Ports)
		}
	}
	for _, socket := range []tcp.Socket{listener(1, 52), listener(92, 0)} {
		if !s.Owns(&socket) {
			t.Errorf("%+v is not known", socket)
		}
	}
	root := Decide(Facts{Cgroups: CgroupIDs{Own: 1}})
	root.Extend(&later)
	if root.Owns(&tcp.Socket{Cgroup: 52}) {
		t.Error("groups are known in a hierarchy without groups")
	}
}

func TestMethodNames(t *testing.T) {
	seen := map[string]bool{}
	for m := range Namespace + 1 {
		seen[fmt.Sprint(m)] = true
	}
	if len(seen) != int(Namespace)+1 {
		t.Errorf("%v", seen)
	}
}
