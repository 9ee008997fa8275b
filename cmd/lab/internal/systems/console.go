package systems

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// report is lameduck's report of a stop; docs/report.md has the names.
type report struct {
	Ended    string `json:"ended"`
	LastNew  *int   `json:"last_new_ms"` // also from /proc/net, where short connections cannot be counted
	ExitCode *int   `json:"exit_code"`
	Observer string `json:"observer"`
	Scope    string `json:"scope"`
}

// outcome is the part of a serial console's output that the verdict needs.
type outcome struct {
	report report
	exit   int // PID 1's
	ended  bool
}

// panicLine is the kernel's at the end of PID 1, with a status as wait4(2) has it.
var panicLine = regexp.MustCompile(`Attempted to kill init! exitcode=0x([0-9a-f]{8})`)

// parseConsole finds the last report and the end of PID 1. Other lines are skipped.
func parseConsole(text string) (o outcome) {
	for line := range strings.Lines(text) {
		if match := panicLine.FindStringSubmatch(line); match != nil {
			status, _ := strconv.ParseUint(match[1], 16, 32)
			o.exit, o.ended = exitCode(uint32(status)), true
		}
		var r report
		if start := strings.IndexByte(line, '{'); start >= 0 && json.Unmarshal([]byte(line[start:]), &r) == nil && r.ExitCode != nil {
			o.report = r
		}
	}
	return o
}

// exitCode is a shell's number for a status.
func exitCode(status uint32) int {
	if signal := status & 0x7f; signal != 0 {
		return 128 + int(signal)
	}
	return int(status >> 8 & 0xff)
}

// tail is the last lines of text, indented.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r", "")), "\n")
	if len(all) > lines {
		all = append([]string{fmt.Sprintf("… %d lines before", len(all)-lines)}, all[len(all)-lines:]...)
	}
	return "    " + strings.Join(all, "\n    ")
}
