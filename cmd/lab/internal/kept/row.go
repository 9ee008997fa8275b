package kept

import (
	"embed"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed testdata
var testdata embed.FS

// row is a kind of server and client.
type row struct {
	name   string
	server []string // a script of testdata/servers, and its argument
	client []string
	thinks []time.Duration // of a request, on average
}

// retries reports whether the client sends again what the server has not processed. No
// library does that with a POST whose bytes it has written.
func (r *row) retries() bool { return r.client[0] != "raw" && !slices.Contains(r.client, "POST") }

// slow reports whether one of ten requests takes ten times as long.
func (r *row) slow() bool { return r.client[len(r.client)-1] == "slow" }

// signal returns the signal of a graceful stop, as lameduck's presets have it.
func (r *row) signal() syscall.Signal {
	switch r.server[0] {
	case "nginx":
		return syscall.SIGQUIT
	case "haproxy":
		return syscall.SIGUSR1
	case "postgres":
		return syscall.SIGINT
	}
	return syscall.SIGTERM
}

// other returns the server of the other replica, which is also the upstream of a proxy.
func (r *row) other() []string {
	if r.server[0] == "nginx" || r.server[0] == "haproxy" {
		return []string{"lab", "http"}
	}
	return r.server
}

func rows() []row {
	var all []row
	for line := range strings.Lines(read("rows.txt")) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.HasPrefix(line, "#") {
			continue
		}
		r := row{name: strings.TrimSpace(cells[0]), server: strings.Fields(cells[1]), client: strings.Fields(cells[2])}
		for _, word := range strings.Fields(cells[3]) {
			think, _ := time.ParseDuration(word)
			r.thinks = append(r.thinks, think)
		}
		all = append(all, r)
	}
	return all
}

func read(name string) string {
	text, err := testdata.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func script(server string) string { return read("servers/" + server + ".sh") }

// missing returns the first program that the row needs and the machine lacks, or "". The
// first line of a server's script has the names of its programs, and patterns of files.
func (r *row) missing() string {
	line, _, _ := strings.Cut(script(r.server[0]), "\n")
	needs := strings.Fields(line)[2:]
	switch r.client[0] {
	case "node":
		needs = append(needs, "node", "/usr/share/nodejs/undici")
	case "java":
		needs = append(needs, "java", "/usr/share/java/httpclient5.jar")
	}
	for _, need := range needs {
		found, _ := filepath.Glob(need)
		if _, err := exec.LookPath(need); err != nil && len(found) == 0 {
			return need
		}
	}
	return ""
}
