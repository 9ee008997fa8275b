package kept

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/load"

	"github.com/lameduck-init/lameduck/internal/plays"
)

const (
	conns  = 24
	conns2 = 6 // of HTTP/2, with several requests at a time
	askFor = 10 * time.Second
)

// client makes a request that has a name and takes the server some time.
type client interface {
	do(name string, think time.Duration) error
	close()
}

// newClient returns a client of a row. pick returns the address of each new connection.
func newClient(r *row, pick func() string, dir string) client {
	how := peers.Client{Protocol: r.protocol, Server: "lab", Limit: askFor, Conns: 1}
	how.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, pick())
	}
	n := conns2
	switch r.protocol {
	case "node", "java", "python3":
		return startProgram(r, dir)
	case "tcp", "tls", "websocket":
		return &raw{row: r, how: how, pool: load.Client{Keep: true, Conns: conns, LIFO: r.lifo, Pick: pick}}
	case "http", "https":
		n, how.Conns = 1, conns
	}
	l := links{row: r}
	for range n {
		link := must.Get(how.Open())
		must.Do(take(link, r.first))
		l.all = append(l.all, link)
	}
	return l
}

// steps returns the steps of a request.
func (r *row) steps(name string, think time.Duration) []plays.Step {
	words := strings.NewReplacer("NAME", name, "THINK", millis(think), "SECONDS", fmt.Sprint(think.Seconds()))
	steps := sessions.Steps(r.request)
	for i := range steps {
		steps[i].Arg = words.Replace(steps[i].Arg)
	}
	return steps
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1fms", d.Seconds()*1000) }

func take(link peers.Link, steps []plays.Step) (err error) {
	for i := 0; err == nil && i < len(steps); i++ {
		err = link.Take(steps[i])
	}
	return err
}

// raw is a client that retries nothing, and looks before each request whether the server has
// closed the connection.
type raw struct {
	*row
	how     peers.Client
	pool    load.Client
	streams sync.Map // by connection
}

func (r *raw) do(name string, think time.Duration) error {
	return r.pool.Do(time.Now().Add(askFor), func(conn *load.Conn) (again bool, err error) {
		known, _ := r.streams.Load(conn)
		stream, begun := known.(*peers.Stream)
		if !begun {
			if stream, err = r.how.Over(conn); err == nil {
				err = take(stream, r.first)
			}
			if err != nil {
				return false, err
			}
			r.streams.Store(conn, stream)
		}
		err = take(stream, r.steps(name, think))
		return !stream.Last, err
	})
}

func (r *raw) close() { r.pool.Close() }

// links are the clients of libraries.
type links struct {
	*row
	all []peers.Link
}

func (l links) do(name string, think time.Duration) error {
	err := take(l.all[rand.IntN(len(l.all))], l.steps(name, think))
	var long *url.Error
	if errors.As(err, &long) {
		return long.Err // without the URL
	}
	return err
}

func (l links) close() {
	for _, link := range l.all {
		link.Take(plays.Step{Verb: "close"})
	}
}

// program is a client in another language, which reads requests as lines, and prints how
// each has ended.
type program struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	waiting sync.Map // a channel for the error of each request, by name
}

func startProgram(r *row, dir string) client {
	must.Do(os.CopyFS(dir, must.Get(fs.Sub(testdata, "testdata"))))
	p := &program{cmd: exec.Command(r.protocol, strings.Fields(r.request)...)}
	p.cmd.Dir = dir
	p.cmd.Stderr = os.Stderr
	p.cmd.Env = append(os.Environ(), "NODE_PATH=/usr/share/nodejs",
		"CLASSPATH="+strings.ReplaceAll(":httpclient5:httpcore5:httpcore5-h2:slf4j-api:slf4j-nop", ":", ".jar:/usr/share/java/")+".jar")
	p.in = must.Get(p.cmd.StdinPipe())
	out := must.Get(p.cmd.StdoutPipe())
	must.Do(p.cmd.Start())
	go p.read(out)
	return p
}

func (p *program) read(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		var err error
		if text != "" {
			err = errors.New(text)
		}
		if done, waits := p.waiting.Load(name); waits {
			done.(chan error) <- err
		}
	}
}

func (p *program) do(name string, think time.Duration) error {
	done := make(chan error, 1)
	p.waiting.Store(name, done)
	if _, err := fmt.Fprintf(p.in, "%s /app?name=%[1]s&think=%s\n", name, millis(think)); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-time.After(2 * askFor):
		return os.ErrDeadlineExceeded
	}
}

func (p *program) close() {
	p.in.Close()
	p.cmd.Process.Kill()
	p.cmd.Wait()
}
