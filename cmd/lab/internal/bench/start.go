package bench

import (
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/proc"
)

// manyArguments is the number of arguments in the second measurement of a start.
const manyArguments = 20_000

// run runs a command to its end.
func (c contender) run(command ...string) (took time.Duration, usage unix.Rusage) {
	before := time.Now()
	status, usage := wait(c.boot(null, os.Stderr, command...))
	took = time.Since(before)
	must.Be(status == 0, "%v, under %s, ends with status %#x", command[0], c.name, status)
	return took, usage
}

// start measures the whole run of an empty command, under each contender:
// without arguments, and with many. Page faults are of a whole run of /bin/true,
// the program that people try first.
func (b *bench) start(field []contender, nothing string) {
	turns(b, 1000/b.less, field, func(c contender) {
		took, usage := c.run(nothing)
		b.add(wall, c.name, micro(took))
		b.add(cpu, c.name, float64(usage.Utime.Nano()+usage.Stime.Nano())/1000)
	})
	many := append([]string{nothing}, slices.Repeat([]string{"argument"}, manyArguments)...)
	turns(b, 50/b.less, field, func(c contender) {
		_, usage := c.run("/bin/true")
		b.add(faults, c.name, float64(usage.Minflt))
		took, _ := c.run(many...)
		b.add(wallMany, c.name, micro(took))
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
			b.add(latency, x.name, micro(time.Since(before)))
		})
		for _, x := range boxes {
			x.close()
		}
	}
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
		rollup := must.Get(proc.Values(fmt.Sprintf("/proc/%d/smaps_rollup", x.pid)))
		status := must.Get(proc.Values(fmt.Sprintf("/proc/%d/status", x.pid)))
		b.add(rss, x.name, rollup["Rss"])
		b.add(anon, x.name, rollup["Anonymous"])
		b.add(threads, x.name, status["Threads"])
		b.add(size, x.name, float64(must.Get(os.Stat(x.prefix[0])).Size())/1000)
		before[x.pid] = proc.Switches(x.pid)
	}
	time.Sleep(b.length(idleFor))
	for _, x := range boxes {
		b.add(switches, x.name, (proc.Switches(x.pid)-before[x.pid])/b.length(idleFor).Minutes())
		x.close()
	}
}
