package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// breeders is the number of shells that make orphans side by side.
const breeders = 4

// breed writes a byte when the init has settled, has $2 shells make $1 orphans each, and
// writes another byte at the end: of two forks in a row the first ends at once, so that
// the init becomes the parent of the second. breed stays, since the init would exit with
// the command.
const breed = `
breed() {
	i=0
	while [ $i -lt $1 ]; do
		(: &)
		i=$((i+1))
	done
}
sleep 0.2
printf s
n=0
while [ $n -lt $2 ]; do
	breed $1 &
	n=$((n+1))
done
wait
printf d
exec sleep 1000`

// storm measures the processor time that each init needs to reap orphans.
func (f figures) storm(field []contender, storms, orphans int) {
	turns(storms, field, func(c contender, counts bool) {
		if !c.relays || !counts {
			return
		}
		b := open(c, "/bin/sh", "-c", breed, "breed", strconv.Itoa(orphans/breeders), strconv.Itoa(breeders))
		defer b.close()
		before := b.cpu()
		b.hear()
		b.reaped()
		f.add(storm, c, micro(b.cpu()-before)/1000)
	})
}

// reaped waits until the command is the only child of the first process.
func (b *box) reaped() {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		children := 0
		for _, list := range must(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", b.pid))) {
			text, _ := os.ReadFile(list) // a thread may have ended
			children += len(strings.Fields(string(text)))
		}
		if children == 1 {
			return
		}
	}
	check(errors.New(b.name + " does not reap all orphans"))
}
