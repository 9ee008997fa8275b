package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// settle is the time for an init to end all work for the start.
const settle = 2 * time.Second

// idle runs copies of each contender with a command that sleeps, all at one time.
func (f figures) idle(field []contender, copies int, length time.Duration) {
	var boxes []*box
	for range copies {
		for _, c := range field {
			b := open(c, "/bin/sh", "-c", "printf r; exec sleep 1000")
			defer b.close()
			boxes = append(boxes, b)
		}
	}
	time.Sleep(settle)
	before := map[*box]float64{}
	for _, b := range boxes {
		f.memory(b)
		before[b] = b.switches()
	}
	time.Sleep(length)
	for _, b := range boxes {
		f.add(switches, b.contender, (b.switches()-before[b])/length.Minutes())
	}
}

// memory measures the first process alone.
func (f figures) memory(b *box) {
	rollup := values(fmt.Sprintf("/proc/%d/smaps_rollup", b.pid))
	f.add(rss, b.contender, rollup["Rss"])
	f.add(pss, b.contender, rollup["Pss"])
	f.add(anon, b.contender, rollup["Anonymous"])
	f.add(threads, b.contender, values(fmt.Sprintf("/proc/%d/status", b.pid))["Threads"])
}

// switches returns how often the threads of the first process have left a processor.
func (b *box) switches() (sum float64) {
	for _, task := range must(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", b.pid))) {
		status := values(task)
		sum += status["voluntary_ctxt_switches"] + status["nonvoluntary_ctxt_switches"]
	}
	return sum
}

// values reads a file of lines "NAME: NUMBER ...".
func values(path string) map[string]float64 {
	found := map[string]float64{}
	for line := range strings.Lines(string(must(os.ReadFile(path)))) {
		name, rest, _ := strings.Cut(line, ":")
		if words := strings.Fields(rest); len(words) > 0 {
			found[name], _ = strconv.ParseFloat(words[0], 64)
		}
	}
	return found
}
