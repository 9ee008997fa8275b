package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// run runs a command to its end.
func (c contender) run(command ...string) (took time.Duration, usage unix.Rusage) {
	before := time.Now()
	status, usage := wait(c.boot(null, os.Stderr, command...))
	took = time.Since(before)
	must.Be(status == 0, "%v, under %s, ends with status %#x", command[0], c.name, status)
	return took, usage
}

// start measures the whole run of an empty command, under each contender. Page faults are of
// /bin/true, the program that people try first.
func (b *bench) start(field []contender, nothing string) {
	turns(b, 1000/b.less, field, func(c contender) {
		took, _ := c.run(nothing)
		b.add("start", c.name, micro(took))
	})
	turns(b, 50/b.less, field, func(c contender) {
		_, usage := c.run("/bin/true")
		b.add("faults", c.name, float64(usage.Minflt))
	})
}

// pause lets all processes fall asleep again between two signals, as inits mostly are.
const pause = 3 * time.Millisecond

// casts is how often all inits are started anew, for so many signals in all: the processors on
// which the threads of an init sleep matter, and are luck.
const (
	casts   = 20
	signals = 2000
)

// latency measures the time from USR1 to each contender to the answer of the command.
func (b *bench) latency(field []contender, answer string) {
	for range casts {
		var boxes []*box
		for _, c := range field {
			boxes = append(boxes, c.open(answer))
		}
		turns(b, signals/casts/b.less, boxes, func(x *box) {
			time.Sleep(pause)
			before := time.Now()
			must.Do(unix.Kill(x.pid, unix.SIGUSR1))
			x.hear()
			b.add("latency", x.name, micro(time.Since(before)))
		})
		for _, x := range boxes {
			x.close()
		}
	}
}

// rounds is how many times each init reaps orphans of each kind: a storm of so many that some
// shells make side by side, and single ones that find the init asleep, with a pause after each.
const (
	rounds   = 5
	orphans  = 10_000
	breeders = 4
	singles  = 100
	between  = "sleep 0.02"
)

// breed writes a byte when the init has settled, has $2 shells make $1 orphans each, with the
// pause $3 after each, and writes another byte at the end: of two forks in a row the first ends
// at once, so that the init becomes the parent of the second. breed stays, since the init would
// exit with the command.
const breed = `
breed() {
	i=0
	while [ $i -lt $1 ]; do
		(: &)
		$2
		i=$((i+1))
	done
}
sleep 0.2
printf s
n=0
while [ $n -lt $2 ]; do
	breed $1 "$3" &
	n=$((n+1))
done
wait
printf d
exec sleep 1000`

// reap measures the processor time that each init needs to reap orphans, until the command is
// the only child.
func (b *bench) reap(field []contender, what string, each, breeders int, pause string) {
	turns(b, rounds, field, func(c contender) {
		x := c.open("/bin/sh", "-c", breed, "breed", strconv.Itoa(each/b.less), strconv.Itoa(breeders), pause)
		defer x.close()
		before := x.cpu()
		x.hear()
		reaped := func() bool { return len(strings.Fields(read(x.pid, "task/*/children"))) <= 1 }
		must.Be(must.Soon(10*time.Second, reaped), "%s does not reap all orphans", c.name)
		b.add(what, c.name, micro(x.cpu()-before)/1000)
	})
}

// copies is how many of each init are idle side by side for idleFor, and settle the time for an
// init to end all work for the start.
const (
	copies  = 25
	idleFor = 2 * time.Minute
	settle  = 2 * time.Second
)

// idle measures what the first process alone costs while the command sleeps, and the size of
// the binary.
func (b *bench) idle(field []contender) {
	var boxes []*box
	for range copies {
		for _, c := range field {
			boxes = append(boxes, c.open("/bin/sh", "-c", "printf r; exec sleep 1000"))
		}
	}
	time.Sleep(settle)
	before := map[int]float64{}
	for _, x := range boxes {
		b.add("rss", x.name, sum(x.pid, "smaps_rollup", "Rss"))
		b.add("anon", x.name, sum(x.pid, "smaps_rollup", "Anonymous"))
		b.add("threads", x.name, sum(x.pid, "status", "Threads"))
		b.add("size", x.name, float64(must.Get(os.Stat(x.prefix[0])).Size())/1000)
		before[x.pid] = switched(x.pid)
	}
	length := idleFor / time.Duration(b.less)
	time.Sleep(length)
	for _, x := range boxes {
		b.add("switches", x.name, (switched(x.pid)-before[x.pid])/length.Minutes())
		x.close()
	}
}

// switched returns how often the threads of a process have left a processor.
func switched(pid int) float64 { return sum(pid, "task/*/status", "voluntary_ctxt_switches") }

// sum adds up the numbers of the lines "NAME: NUMBER" in files of a process whose names have an end.
func sum(pid int, files, end string) (sum float64) {
	for line := range strings.Lines(read(pid, files)) {
		name, rest, _ := strings.Cut(line, ":")
		if strings.HasSuffix(name, end) {
			var number float64
			must.Get(fmt.Sscan(rest, &number))
			sum += number
		}
	}
	return sum
}

// read returns the text of files of a process; see proc(5). A thread may have ended.
func read(pid int, files string) string {
	paths := must.Get(filepath.Glob(fmt.Sprintf("/proc/%d/%s", pid, files)))
	var all []byte
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		all = append(all, text...)
	}
	return string(all)
}
