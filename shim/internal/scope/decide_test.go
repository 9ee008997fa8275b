package scope

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

// listener returns a listener on a port, whose inode is the port's number.
func listener(port uint16, cgroup uint64) tcp.Socket {
	return tcp.Socket{State: tcp.Listen, Local: any4(port), Inode: uint32(port), Cgroup: cgroup}
}

func any4(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), port) }

// parseFacts reads facts in the words of testdata/decisions.txt.
func parseFacts(t *testing.T, text string) (f Facts) {
	t.Helper()
	f.Held.Inodes, f.Shim = Inodes{}, Inodes{}
	for word := range strings.FieldsSeq(text) {
		name, value, hasValue := strings.Cut(word, "=")
		var number, group uint32
		fmt.Sscanf(value, "%d/%d", &number, &group)
		switch name {
		case "given":
			f.Given = append(f.Given, uint16(number))
		case "listen":
			f.Listeners = append(f.Listeners, listener(uint16(number), uint64(group)))
		case "connect":
			f.Connections = append(f.Connections, listener(uint16(number), uint64(group)))
		case "around":
			for _, l := range parseFacts(t, "listen=82/60 listen=80/50 listen=81/51 listen=83/61").Listeners {
				c := l
				c.State, c.Local = tcp.Established, any4(l.Local.Port()+1000)
				f.Listeners = append(f.Listeners, l, l, c)
			}
		case "own":
			f.Cgroups.Own = uint64(number)
			if !hasValue {
				f.Cgroups = CgroupIDs{Own: 50, Below: []uint64{51}}
			}
		case "below":
			f.Cgroups.Below = append(f.Cgroups.Below, uint64(number))
		case "below-unknown":
			f.Cgroups.Err = errors.New("groups")
		case "held":
			f.Held.Inodes[number] = true
		case "shim":
			f.Shim[number] = true
		case "unread":
			f.Held.Err = errors.New("descriptors")
		case "table":
			f.Err = errors.New("table")
		case "range":
			f.Ephemeral = procfs.PortRange{First: 700, Last: 799}
		case "udp":
			f.UDP = append(f.UDP, procfs.UDP{Local: any4(uint16(number)), Inode: number})
		case "unix":
			_, path, _ := strings.Cut(value, ":")
			f.Unix = append(f.Unix, procfs.Unix{Inode: number, Path: path})
		case "unseen":
			f.Unseen = append(f.Unseen, value)
		default:
			t.Fatalf("no fact %q", word)
		}
	}
	return f
}

// describe returns a scope in the words of testdata/decisions.txt.
func describe(s Scope) string {
	text := s.Method.String()
	if len(s.Ports) > 0 {
		text += fmt.Sprint(" ", s.Ports)
	}
	if len(s.UDP) > 0 {
		text += fmt.Sprint(" UDP ", s.UDP)
	}
	if len(s.Unix) > 0 {
		text += fmt.Sprint(" Unix ", s.Unix)
	}
	if len(s.Unseen) > 0 {
		text += fmt.Sprint(" unseen ", s.Unseen)
	}
	if s.NoListener() {
		text += " none"
	}
	switch {
	case !s.Complete:
		text += fmt.Sprint(" incomplete: ", s.Why)
	case s.Why != nil:
		text += fmt.Sprint(" because: ", s.Why)
	}
	return text
}

//go:embed testdata/decisions.txt
var decisions string

func TestDecide(t *testing.T) {
	for _, cells := range script.Rows(decisions) {
		if got := describe(Decide(parseFacts(t, cells[1]))); got != cells[2] {
			t.Errorf("%s: %s, want %s", cells[0], got, cells[2])
		}
	}
}

// TestNeverNone: whichever facts are missing, in all combinations, a listener of ours is in
// the lists, or the scope is not complete.
func TestNeverNone(t *testing.T) {
	for bits := range 1 << 6 {
		on := func(bit int) bool { return bits>>bit&1 == 1 }
		f := parseFacts(t, "listen=81/51 own held=81")
		if on(0) {
			f.Listeners, f.Err = nil, errors.New("table")
		}
		if on(1) {
			f.Cgroups.Below, f.Cgroups.Err = nil, errors.New("groups")
		}
		if on(2) {
			f.Cgroups = CgroupIDs{Own: 1}
		}
		if on(3) {
			f.Held = Sockets{Err: errors.New("descriptors")}
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

// TestOwns: which sockets are ours, and what is learnt later.
func TestOwns(t *testing.T) {
	socket := func(inode uint32, cgroup uint64) *tcp.Socket {
		return &tcp.Socket{State: tcp.Established, Inode: inode, Cgroup: cgroup}
	}
	facts := parseFacts(t, "given=80 own held=7 shim=8")
	s := Decide(facts)
	for name, c := range map[string]struct {
		socket *tcp.Socket
		want   bool
	}{
		"our group":            {socket(0, 50), true},
		"a group below":        {socket(0, 51), true},
		"a descriptor of ours": {socket(7, 60), true},
		"lameduck's own":       {socket(8, 0), true},
		"a neighbor":           {socket(9, 60), false},
		"nobody":               {socket(0, 0), false},
	} {
		if got := s.Owns(c.socket); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	late := socket(9, 0)
	s.Learn(Inodes{9: true})
	if !s.Owns(late) || facts.Held.Inodes.Has(9) {
		t.Error("what was learnt is not known, or in the facts")
	}
	var zero Scope
	zero.Learn(Inodes{9: true})
	if !zero.Owns(late) || zero.NoListener() {
		t.Error("the zero scope")
	}
	if root := Decide(parseFacts(t, "own=1")); root.Owns(socket(0, 1)) {
		t.Error("the root group is nobody's")
	}
}

// TestExtend: ports found later are added once, and so are the groups and sockets by which
// connections to ourselves are known.
func TestExtend(t *testing.T) {
	s := Decide(parseFacts(t, "around own"))
	later := Decide(parseFacts(t, "listen=80/50 listen=70/50 listen=90/52 listen=91/60 listen=92/60 own=50 below=51 below=52 held=92"))
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
	root := Decide(parseFacts(t, "own=1"))
	root.Extend(&later)
	if root.Owns(&tcp.Socket{Cgroup: 52}) {
		t.Error("groups are known in a hierarchy without groups")
	}
}
