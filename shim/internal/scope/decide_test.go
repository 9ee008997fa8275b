package scope

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// parseFacts reads facts in the words of testdata/decisions.txt.
func parseFacts(t *testing.T, text string) (f Facts) {
	t.Helper()
	f.Held, f.Shim = Inodes{}, Inodes{}
	const around = "listen=82/60 listen=80/50 listen=80/50 listen=81/51 listen=83/61"
	text = strings.ReplaceAll(text, "around", around)
	// The other words are names of fields.
	text = strings.NewReplacer("listen=", "listeners=", "connect=", "open=", "range", "ephemeral=", "table", "err=table",
		"unread", "helderr=descriptors", "groups", "cgrouperr=groups").Replace(text)
	for word := range strings.FieldsSeq(text) {
		name, value, hasValue := strings.Cut(word, "=")
		socket := socketOf(value)
		switch number := socket.Inode; name {
		case "own":
			f.Cgroup = 50
			if hasValue {
				f.Cgroup = uint64(number)
			}
		case "held":
			f.Held[number] = true
		case "shim":
			f.Shim[number] = true
		default:
			ephemeral := func(string) procfs.PortRange { return procfs.PortRange{First: 700, Last: 799} }
			if !tables.Set(&f, name, value, socketOf, errors.New, ephemeral) {
				t.Fatalf("no fact %q", word)
			}
		}
	}
	return f
}

// socketOf returns a listener, of PORT/CGROUP.
func socketOf(text string) tcp.Socket {
	s := tcp.Socket{State: tcp.Listen}
	fmt.Sscanf(text, "%d/%d", &s.Inode, &s.Cgroup)
	s.Local = netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(s.Inode))
	return s
}

// describe returns a scope in the words of testdata/decisions.txt.
func describe(s Scope) string {
	text := fmt.Sprint(s.Method, " TCP ", s.Ports, " UDP ", s.UDP, " unseen ", s.Unseen)
	for _, empty := range []string{" TCP []", " UDP []", " unseen []"} {
		text = strings.ReplaceAll(text, empty, "")
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
	for _, cells := range tables.Rows(decisions) {
		if got := describe(Decide(parseFacts(t, cells[1]))); got != cells[2] {
			t.Errorf("%s: %s, want %s", cells[0], got, cells[2])
		}
	}
}

// TestNeverNone: whichever facts are missing, in all combinations, a listener of ours is in
// the lists, or the scope is not complete.
func TestNeverNone(t *testing.T) {
	for _, listeners := range []string{"listen=81/51", "listen=81/0", "table"} {
		for _, groups := range []string{"own=51", "own groups", "own=1", ""} {
			for _, descriptors := range []string{"held=81", "unread"} {
				for _, neighbor := range []string{"", "listen=90/60"} {
					text := strings.Join([]string{listeners, groups, descriptors, neighbor}, " ")
					if s := Decide(parseFacts(t, text)); s.NoListener() || s.Complete && !s.Ports.Has(81) {
						t.Errorf("%s: %+v", text, s)
					}
				}
			}
		}
	}
}

// TestOwns: which sockets are ours, by inode and control group, at first and after more listeners were
// found. Ports found later are added once.
func TestOwns(t *testing.T) {
	facts := parseFacts(t, "around own held=7 shim=8")
	later := Decide(parseFacts(t, "listen=80/50 listen=70/50 listen=91/60 listen=92/60 own held=92"))
	sockets := parseFacts(t, "listen=1/50 listen=3/60 listen=7/60 listen=8/0 listen=0/0 listen=92/0").Listeners
	s := Decide(facts)
	if got := portsOf(sockets, s.Owns); !slices.Equal(got, tcp.Ports{1, 7, 8}) {
		t.Errorf("owns %v", got)
	}
	for _, want := range []tcp.Ports{{70, 92}, nil} {
		if added := s.Extend(&later); !slices.Equal(added, want) || !slices.Equal(s.Ports, tcp.Ports{70, 80, 92}) {
			t.Errorf("added %v, now %v", added, s.Ports)
		}
	}
	if got := portsOf(sockets, s.Owns); !slices.Equal(got, tcp.Ports{1, 7, 8, 92}) || facts.Held.Has(92) {
		t.Errorf("owns %v later; facts %+v", got, facts)
	}
}
