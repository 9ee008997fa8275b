package kept

import (
	"embed"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"

	"github.com/lameduck-init/lameduck/internal/plays"
)

//go:embed testdata
var testdata embed.FS

// row is a kind of server and client; testdata/rows.txt has the words.
type row struct {
	name          string
	server        []string // a script of package peers, and its arguments
	protocol      string   // or node, java or python3
	first         []plays.Step
	request       string
	retries, slow bool
	lifo, steady  bool
	probe         bool // each second
	stop          syscall.Signal
	thinks        []time.Duration // of a request, on average
}

// other returns the server of the other replica, which is also the upstream of a proxy.
func (r *row) other() []string {
	if r.server[0] == "nginx" || r.server[0] == "haproxy" {
		return []string{"lab", "http"}
	}
	return r.server
}

var sessions = plays.ReadSessions()

func rows() (all []row) {
	for _, columns := range stage.Rows(read("rows.txt")) {
		r := row{name: columns[0], server: strings.Fields(columns[1]), stop: syscall.SIGTERM}
		words, request, _ := strings.Cut(columns[2], ": ")
		r.request = request
		for word := range strings.FieldsSeq(words) {
			switch name, value, _ := strings.Cut(word, "="); name {
			case "first":
				r.first = sessions.Steps(value)
			case "retries":
				r.retries = true
			case "slow":
				r.slow = true
			case "lifo":
				r.lifo = true
			case "steady":
				r.steady = true
			case "probe":
				r.probe = true
			case "stop":
				r.stop = unix.SignalNum("SIG" + value)
			default:
				r.protocol = word
			}
		}
		for word := range strings.FieldsSeq(columns[3]) {
			r.thinks = append(r.thinks, plays.Duration(word))
		}
		all = append(all, r)
	}
	return all
}

func read(name string) string { return string(must.Get(testdata.ReadFile("testdata/" + name))) }

// missing returns what the row needs and the machine lacks.
func (r *row) missing() []string {
	switch r.protocol {
	case "node":
		return peers.Missing(r.server[0], "other-users", "node", "/usr/share/nodejs/undici")
	case "python3":
		return peers.Missing(r.server[0], "other-users", "python3", "/usr/lib/python3/dist-packages/requests")
	case "java":
		return peers.Missing(r.server[0], "other-users", "java", "/usr/share/java/httpclient5.jar")
	}
	return peers.Missing(r.server[0], "other-users")
}
