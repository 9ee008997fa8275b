package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// gauge counts the resources of a process.
type gauge struct {
	descriptors, threads, zombies int
	anonymous                     int // KiB
}

// heap is the garbage that Go's runtime lets pile up before a collection, in KiB.
const heap = 6 << 10

// patience bounds a handshake. soon bounds the time until the resources of finished
// work are freed.
const (
	patience = time.Minute
	soon     = 8 * time.Second
)

// read gauges a process.
func read(pid int) (g gauge, err error) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	fds, err := os.ReadDir(dir + "fd")
	if err != nil {
		return g, fmt.Errorf("cannot read lameduck's descriptors: %w", err)
	}
	status := fields(dir + "status")
	g = gauge{descriptors: len(fds), threads: status["Threads"], anonymous: status["RssAnon"]}
	for _, child := range children(pid) {
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child)); strings.Contains(string(text), ") Z ") {
			g.zombies++
		}
	}
	return g, nil
}

// fields returns the numbers in a file of lines "NAME: NUMBER ...".
func fields(path string) map[string]int {
	text, _ := os.ReadFile(path)
	values := map[string]int{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		if words := strings.Fields(rest); len(words) > 0 {
			values[name], _ = strconv.Atoi(words[0])
		}
	}
	return values
}

// children returns the children of all threads of a process.
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for word := range strings.FieldsSeq(string(text)) {
			child, _ := strconv.Atoi(word)
			pids = append(pids, child)
		}
	}
	return pids
}

// switches returns how often the threads of a process have been given the processor.
func switches(pid int) (n int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, task := range tasks {
		status := fields(task)
		n += status["voluntary_ctxt_switches"] + status["nonvoluntary_ctxt_switches"]
	}
	return n
}

// check compares a process with its base line. Threads and memory may never grow;
// zombies and descriptors may, for a while. A hold has descriptors of its own.
func check(pid int, base gauge, holding bool) error {
	for end := time.Now().Add(soon); ; time.Sleep(5 * time.Millisecond) {
		now, err := read(pid)
		late := time.Now().After(end)
		switch {
		case err != nil:
			return err
		case now.threads != base.threads:
			return fmt.Errorf("threads: %d, were %d", now.threads, base.threads)
		case now.anonymous > base.anonymous+heap:
			return fmt.Errorf("memory: %d KiB, was %d", now.anonymous, base.anonymous)
		case now.zombies > 0 && late:
			return fmt.Errorf("zombies: %d", now.zombies)
		case !holding && now.descriptors > base.descriptors && late:
			return fmt.Errorf("descriptors: %d, were %d", now.descriptors, base.descriptors)
		case late || now.zombies == 0 && (holding || now.descriptors <= base.descriptors):
			return nil
		}
	}
}

// asleep returns an error unless the process soon sleeps for two seconds in a row.
func asleep(pid int) error {
	for end := time.Now().Add(soon); ; {
		before := switches(pid)
		time.Sleep(2 * time.Second)
		switch n := switches(pid) - before; {
		case n == 0:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("wakeups: %d in two seconds, with nothing to do", n)
		}
	}
}
