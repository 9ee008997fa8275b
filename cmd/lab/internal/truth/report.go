package truth

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// report has what a trial needs of lameduck's report.
type report struct {
	Message string `json:"message"`
	Ended   string `json:"ended"`
	Sent    []struct {
		AtMS int64 `json:"at_ms"`
	} `json:"sent"`
}

// readReport returns the last report in a termination log that has a signal, or nil.
func readReport(path string) *report {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return lastReport(text)
}

func lastReport(text []byte) *report {
	var last *report
	for line := range bytes.Lines(text) {
		r := &report{}
		if json.Unmarshal(line, r) == nil && len(r.Sent) > 0 {
			last = r
		}
	}
	return last
}

// signal returns when the first signal was sent, counted from the trigger.
func (r *report) signal() time.Duration { return time.Duration(r.Sent[0].AtMS) * ms }

// lines collects what lameduck and the server write. A process may write at any time.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// listens reports that a TCP socket in the network namespace of a process listens on a
// port. See proc_pid_net(5): the columns are the slot, the local address, the remote
// address and the state, which is 0A for LISTEN.
func listens(pid, port int) bool {
	want := ":" + strings.ToUpper(leftPad(strconv.FormatInt(int64(port), 16), 4))
	for _, table := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/net/" + table)
		for line := range strings.Lines(string(text)) {
			columns := strings.Fields(line)
			if len(columns) > 3 && columns[3] == "0A" && strings.HasSuffix(columns[1], want) {
				return true
			}
		}
	}
	return false
}

func leftPad(text string, width int) string {
	return strings.Repeat("0", max(width-len(text), 0)) + text
}
