//go:build linux

package shim

import (
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// TestHolder: which process of a container holds for all of it. A process is its id, its parent, and a
// mark, M, or a socket, S.
func TestHolder(t *testing.T) {
	for _, cells := range tables.Rows(`
		processes                 | holder
		                          | 0
		1<0                       | 0
		1<0M                      | 1
		1<0M 5<1 6<1              | 1
		1<0 7<1M                  | 7
		1<0 7<1M 8<7 9<7          | 7
		1<0 7<1 8<7M              | 8
		1<0 7<1 8<7 9<8           | 0
		1<0S 7<1M                 | 0 # a server that runs another one
		1<0 7<1S 8<7M             | 0
		1<0 7<1M 8<1              | 0 # two programs of a shell
		1<0 7<1 8<1M              | 0
		1<0 7<1M 8<1M             | 0
		1<0 7<1 8<7M 9<7          | 0
		1<0 7<1 8<1 9<7M          | 0
		40<0M 41<40               | 40 # the PID namespace is shared
	`)[1:] {
		var family []procfs.Process
		server := 0
		for _, word := range strings.Fields(cells[0]) {
			var p procfs.Process
			word, isMarked := strings.CutSuffix(word, "M")
			word, serves := strings.CutSuffix(word, "S")
			pid, parent, _ := strings.Cut(word, "<")
			p.PID, _ = strconv.Atoi(pid)
			p.Parent, _ = strconv.Atoi(parent)
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
