// Package proc reads what proc(5) shows of processes, for programs that measure them.
package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Values reads a file of lines "NAME: NUMBER ...".
func Values(path string) (map[string]float64, error) {
	text, err := os.ReadFile(path)
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		var number float64 // 0 without one
		fmt.Sscan(rest, &number)
		values[name] = number
	}
	return values, err
}

// Children returns the children of all threads of a process.
func Children(pid int) (pids []int) {
	for _, list := range ofThreads(pid, "children") {
		text, _ := os.ReadFile(list) // a thread may have ended
		for word := range strings.FieldsSeq(string(text)) {
			child, _ := strconv.Atoi(word)
			pids = append(pids, child)
		}
	}
	return pids
}

// Switches returns how often the threads of a process have left a processor.
func Switches(pid int) (sum float64) {
	for _, path := range ofThreads(pid, "status") {
		status, _ := Values(path)
		sum += status["voluntary_ctxt_switches"] + status["nonvoluntary_ctxt_switches"]
	}
	return sum
}

// ofThreads returns the paths of a file of all threads of a process.
func ofThreads(pid int, file string) []string {
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/%s", pid, file))
	return paths
}
