package pages

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stubborn is a command that ignores TERM, and ends with its standard input.
const stubborn = `trap "" TERM; echo ready; read -r line`

// stops are the stops in stops.log, which docs/production.md queries.
var stops = []struct {
	name    string
	env     []string
	args    []string
	request bool // a client sends a request, which myserver never answers
	killed  bool // KILL comes when lameduck has written the second line
}{
	{name: "quiet", env: []string{"LAMEDUCK_DELAI=10"}, args: []string{"--until=quiet", "--quiet-for=1", "--grace-period=30", "--", "myserver", "127.0.0.1:0"}},
	{name: "a request in flight", args: []string{"--until=quiet", "--max-delay=2", "--grace-period=30", "--", "myserver", "127.0.0.1:0"}, request: true},
	{name: "killed by lameduck", args: []string{"--delay=1", "--kill-after=1", "--grace-period=30", "--", "sh", "-c", stubborn}},
	{name: "killed by the orchestrator", args: []string{"--delay=1", "--grace-period=3", "--", "sh", "-c", stubborn}, killed: true},
}

// stopsLog returns the log of all stops, with a line of another program first. The stops
// take place once.
var stopsLog = sync.OnceValue(func() []byte {
	logs := make([]bytes.Buffer, len(stops))
	var all sync.WaitGroup
	for i := range stops {
		all.Go(func() { stopOnce(i, &logs[i]) })
	}
	all.Wait()
	text := []byte("myserver: ready\n")
	for i := range logs {
		text = append(text, logs[i].Bytes()...)
	}
	return text
})

// stopOnce runs a command under lameduck and stops the command. Whatever goes wrong is
// missing in the log.
func stopOnce(i int, log *bytes.Buffer) {
	s := stops[i]
	cmd := lameduck(s.env, append([]string{"--log-format=json", "--termination-log=none"}, s.args...)...)
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	stderr, _ := cmd.StderrPipe()
	if cmd.Start() != nil {
		return
	}
	kill := func() {
		cmd.Process.Kill()
		stdin.Close()
	}
	timer := time.AfterFunc(patience, kill)
	defer timer.Stop()
	ready := make([]byte, 100)
	n, _ := stdout.Read(ready)
	if s.request {
		defer ask(string(ready[:n])).Close()
	}
	cmd.Process.Signal(syscall.SIGTERM)
	for lines := bufio.NewReader(stderr); ; {
		line, err := lines.ReadBytes('\n')
		log.Write(line)
		if s.killed && bytes.Count(log.Bytes(), []byte("\n")) == 2 {
			kill()
		}
		if err != nil {
			break
		}
	}
	cmd.Wait()
}

// ask sends a request to the address that myserver has printed.
func ask(ready string) io.Closer {
	_, address, _ := strings.Cut(strings.TrimSpace(ready), "ready ")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return io.NopCloser(nil)
	}
	io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n")
	return conn
}

// reportNames returns the names in the JSON of a report, from testdata/report.txt.
func reportNames(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(root + "/testdata/report.txt")
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"schema": 1, "time": "", "level": "", "message": ""}
	if err := json.Unmarshal(regexp.MustCompile(`(?m)^\{.*$`).Find(text), &object); err != nil {
		t.Fatal(err)
	}
	return slices.Collect(maps.Keys(object))
}

// queryWords are the words of query languages, and the labels of the pages' own programs.
var queryWords = strings.Fields(`json and or not __error__ app web fields filter stats count bin by timestamp sum count_over_time h
	quantile_over_time unwrap limit sort desc pod avg`)

// query checks that each word of a query of LogQL, Logs Insights or KQL is a name of the
// report, a value that the report may have, or a word of the language.
func query(t *testing.T, text string) {
	known := slices.Concat(reportNames(t), queryWords)
	text = regexp.MustCompile(`"[^"]*"|#.*`).ReplaceAllString(text, "")
	for _, word := range regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`).FindAllString(text, -1) {
		if !slices.Contains(known, word) {
			t.Errorf("no name of the report, and no word of a query language: %s", word)
		}
	}
}

// TestProductionNames: each name in the tables of docs/production.md is a name of the report.
func TestProductionNames(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/production.md"))
	if err != nil {
		t.Fatal(err)
	}
	known, rows := reportNames(t), 0
	_, dashboard, _ := strings.Cut(string(text), "## A dashboard")
	dashboard, _, _ = strings.Cut(dashboard, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(dashboard, -1) {
		for _, name := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(m[1], -1) {
			rows++
			if !slices.Contains(known, name[1]) {
				t.Errorf("the report has no %s", name[1])
			}
		}
	}
	if rows < 8 {
		t.Errorf("%d names", rows)
	}
}

// needs skips a test where a program is not installed.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
}
