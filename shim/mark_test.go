//go:build linux

package shim

import (
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// TestHolder: which process of a container holds for all of it. A process is its id, its parent,
// its start, and a mark, M, or a socket, S. A hook has no parent in its PID namespace.
func TestHolder(t *testing.T) {
	for _, cells := range tables.Rows(`
		processes                           | holder
		                                    | 0
		1<0@5M 9<0@90                       | 1
		1<0@5 9<0@90                        | 0
		1<0@5 7<1@6M 9<0@90                 | 7
		1<0@5 7<1@6 8<7@6M 9<0@90           | 8
		1<0@5S 7<1@6M 9<0@90                | 0 # a server that runs another one
		1<0@5 7<1@6M 8<1@6 9<0@90           | 0 # two programs of a shell
		1<0@5 7<1@6M 8<1@6M 9<0@90          | 0
		1<0@5 7<1@6M 8<7@7 9<8@8            | 7
		1<0@5 7<0@50M 9<0@90                | 0 # another program that entered the container
		40<0@5M 9<0@90                      | 40 # the PID namespace is shared
		40<0@5 9<0@90 3<9@91M               | 0
		9<0@90                              | 0 # only the hook itself
	`)[1:] {
		var family []procfs.Process
		server := 0
		for _, word := range strings.Fields(cells[0]) {
			var p procfs.Process
			word, isMarked := strings.CutSuffix(word, "M")
			word, serves := strings.CutSuffix(word, "S")
			pid, rest, _ := strings.Cut(word, "<")
			parent, start, _ := strings.Cut(rest, "@")
			p.PID, _ = strconv.Atoi(pid)
			p.Parent, _ = strconv.Atoi(parent)
			p.Start, _ = strconv.ParseUint(start, 10, 64)
			if isMarked {
				p.Name = mark
			}
			if serves {
				server = p.PID
			}
			family = append(family, p)
		}
		got := holder(family, func(pid int) bool { return pid == server })
		if want, _, _ := strings.Cut(cells[1], " "); strconv.Itoa(got) != want {
			t.Errorf("%s: %d, want %s", cells[0], got, want)
		}
	}
}
