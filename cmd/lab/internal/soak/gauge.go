package soak

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/proc"
)

// gauge counts the resources of a process.
type gauge struct{ descriptors, threads, zombies, anonymousKiB int }

// heap is the garbage that Go's runtime lets pile up before a collection, in KiB.
const heap = 6 << 10

// patience bounds a handshake. soon bounds the time until the resources of finished
// work are freed.
const (
	patience = time.Minute
	soon     = 8 * time.Second
)

// read gauges a process.
func read(pid int) gauge {
	fds := must.Get(os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)))
	status := must.Get(proc.Values(fmt.Sprintf("/proc/%d/status", pid)))
	zombies := 0
	for _, child := range proc.Children(pid) {
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child)); strings.Contains(string(text), ") Z ") {
			zombies++
		}
	}
	return gauge{len(fds), int(status["Threads"]), zombies, int(status["RssAnon"])}
}

// check compares lameduck with its base line. Threads and memory may never grow; zombies
// and descriptors may, for a while.
func (l *life) check() {
	var now gauge
	must.Soon(soon, func() bool {
		now = read(l.pid)
		must.Be(now.threads == l.base.threads, "threads: %d, were %d", now.threads, l.base.threads)
		must.Be(now.anonymousKiB <= l.base.anonymousKiB+heap, "memory: %d KiB, was %d", now.anonymousKiB, l.base.anonymousKiB)
		return now.zombies == 0 && now.descriptors <= l.base.descriptors
	})
	must.Be(now.zombies == 0, "zombies: %d", now.zombies)
	must.Be(now.descriptors <= l.base.descriptors, "descriptors: %d, were %d", now.descriptors, l.base.descriptors)
}

// sleeps fails unless lameduck soon sleeps for two seconds in a row.
func (l *life) sleeps() {
	must.Be(must.Soon(soon, func() bool {
		before := proc.Switches(l.pid)
		time.Sleep(2 * time.Second)
		return proc.Switches(l.pid) == before
	}), "wakeups: with nothing to do")
}
