package peers

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// programs are the clients in other languages, by protocol: a program, the file that it runs, and
// the library that the file needs.
var programs = map[string]struct{ name, file, uses string }{
	"undici":     {"node", "client.js", "/usr/share/nodejs/undici"},
	"requests":   {"python3", "client.py", "/usr/lib/python3/dist-packages/requests"},
	"httpclient": {"java", "Client.java", "/usr/share/java/httpclient5.jar"},
}

// libraries has those of Node, and of Java.
var libraries = []string{
	"NODE_PATH=/usr/share/nodejs",
	"CLASSPATH=/usr/share/java/httpclient5.jar:/usr/share/java/httpcore5.jar:" +
		"/usr/share/java/httpcore5-h2.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-nop.jar",
}

//go:embed programs
var programFiles embed.FS

// program is a running client, which has a pool of 24 connections.
type program struct {
	in      io.Writer
	mu      sync.Mutex // requests run beside each other
	waiting []chan error
}

// start starts a client. It finds the server by the file "target" in the folder Dir, an address
// and "lab" as in hosts(5), and ends with our namespaces.
func (p *program) start(c *Client) {
	must.Do(os.CopyFS(c.Dir, must.Get(fs.Sub(programFiles, "programs"))))
	cmd := exec.Command(programs[c.Protocol].name, programs[c.Protocol].file)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), libraries...)
	cmd.Stderr = os.Stderr
	p.in = must.Get(cmd.StdinPipe())
	out := must.Get(cmd.StdoutPipe())
	must.Do(cmd.Start())
	go p.read(out)
}

// read reads how the requests have ended: a number and an error, or none. A runtime may print
// warnings, too.
func (p *program) read(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, text, _ := strings.Cut(lines.Text(), " ")
		number, noNumber := strconv.Atoi(word)
		if noNumber != nil {
			continue
		}
		var err error
		if text != "" {
			err = errors.New(text)
		}
		p.mu.Lock()
		p.waiting[number] <- err
		p.mu.Unlock()
	}
}

// Take takes a step: a request.
func (p *program) Take(step plays.Step) error {
	p.mu.Lock()
	ended := make(chan error, 1)
	_, err := fmt.Fprintf(p.in, "%d %s %s\n", len(p.waiting), strings.ToUpper(step.Verb), step.Arg)
	p.waiting = append(p.waiting, ended)
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return <-ended
}
