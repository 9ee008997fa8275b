package kept

import (
	"bufio"
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

const (
	conns  = 24
	conns2 = 6 // of HTTP/2, with several requests at a time
	askFor = 10 * time.Second
)

// client makes a request that has a name and takes the server some time.
type client interface {
	do(name, think string) error
	close()
}

// newClient returns a client of a row. pick returns the address of each new connection.
func newClient(words []string, pick func() string, dir string) (client, error) {
	dial := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", pick())
	}
	switch words[0] {
	case "raw":
		return &raw{wire: wires[words[1]], pool: load.Client{Keep: true, Conns: conns, Pick: pick}}, nil
	case "transport":
		return newTransport(words[1], dial), nil
	case "grpc":
		return newGRPC(words[1:], dial)
	}
	return startProgram(words, dir)
}

// raw is a client that retries nothing, and looks before each request whether the server has
// closed the connection.
type raw struct {
	wire
	pool  load.Client
	above sync.Map // what wire.open returned for a connection
}

func (r *raw) do(name, think string) error {
	return r.pool.Do(time.Now().Add(askFor), func(conn *load.Conn) (again bool, err error) {
		if r.open == nil {
			return r.ask(conn, name, think)
		}
		above, opened := r.above.Load(conn)
		if !opened {
			if above, err = r.open(conn); err != nil {
				return false, err
			}
			r.above.Store(conn, above)
		}
		return r.ask(above.(*load.Conn), name, think)
	})
}

func (r *raw) close() { r.pool.Close() }

// transport is net/http's client. Its word is POST, key for a POST with a key that permits it
// to be sent again, h2c or h2.
type transport struct {
	word    string
	clients []*http.Client
}

func newTransport(word string, dial func(context.Context) (net.Conn, error)) *transport {
	t := &transport{word: word}
	n, limit := 1, conns
	protocols := new(http.Protocols)
	switch word {
	case "h2c":
		protocols.SetUnencryptedHTTP2(true)
		n, limit = conns2, 1
	case "h2":
		protocols.SetHTTP2(true)
		n, limit = conns2, 1
	default:
		protocols.SetHTTP1(true)
	}
	for range n {
		t.clients = append(t.clients, &http.Client{Timeout: askFor, Transport: &http.Transport{
			Protocols: protocols, MaxIdleConnsPerHost: limit, MaxConnsPerHost: limit,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		}})
	}
	return t
}

func (t *transport) do(name, think string) error {
	scheme := "http"
	if t.word == "h2" {
		scheme = "https"
	}
	request, err := http.NewRequest("POST", scheme+"://lab"+path(name, think), strings.NewReader("duck"))
	if err != nil {
		return err
	}
	if t.word == "key" {
		request.Header.Set("Idempotency-Key", name)
	}
	answer, err := t.clients[rand.IntN(len(t.clients))].Do(request)
	if err != nil {
		return errors.Unwrap(err) // without the URL
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return err
}

func (t *transport) close() {
	for _, c := range t.clients {
		c.CloseIdleConnections()
	}
}

// grpcClient has connections of grpc-go.
type grpcClient []*grpc.ClientConn

// newGRPC returns connections, with "stream" each with a stream on which nothing is sent.
func newGRPC(words []string, dial func(context.Context) (net.Conn, error)) (client, error) {
	var g grpcClient
	for range conns2 {
		conn, err := grpc.NewClient("passthrough:///lab", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }))
		if err != nil {
			return nil, err
		}
		if len(words) > 0 && words[0] == "stream" {
			go stayIdle(conn)
		}
		g = append(g, conn)
	}
	return g, nil
}

// stayIdle keeps a stream open, and opens another when it ends, until the connection is
// closed for good.
func stayIdle(conn *grpc.ClientConn) {
	var err error
	for !errors.Is(err, grpc.ErrClientConnClosing) {
		var stream grpc.ClientStream
		stream, err = conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, "/lab/idle", grpc.WaitForReady(true))
		if err == nil && stream.SendMsg(wrapperspb.String("idle")) == nil {
			stream.RecvMsg(&wrapperspb.StringValue{})
		}
	}
}

func (g grpcClient) do(name, think string) error {
	ctx, cancel := context.WithTimeout(context.Background(), askFor)
	defer cancel()
	return g[rand.IntN(len(g))].Invoke(ctx, "/lab/answer", wrapperspb.String(name+" "+think), &wrapperspb.StringValue{})
}

func (g grpcClient) close() {
	for _, conn := range g {
		conn.Close()
	}
}

// program is a client in another language, which reads requests as lines, and prints how
// each has ended.
type program struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	waiting map[string]chan error
}

var (
	//go:embed testdata/client.js
	clientJS string
	//go:embed testdata/Client.java
	clientJava string
)

func startProgram(words []string, dir string) (client, error) {
	for file, text := range map[string]string{"client.js": clientJS, "Client.java": clientJava} {
		if err := os.WriteFile(dir+"/"+file, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	p := &program{cmd: exec.Command(words[0], words[1:]...), waiting: map[string]chan error{}}
	p.cmd.Dir = dir
	p.cmd.Stderr = os.Stderr
	p.cmd.Env = append(os.Environ(), "NODE_PATH=/usr/share/nodejs",
		"CLASSPATH="+strings.ReplaceAll(":httpclient5:httpcore5:httpcore5-h2:slf4j-api:slf4j-nop", ":", ".jar:/usr/share/java/")+".jar")
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(out)
	return p, nil
}

func (p *program) read(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		var err error
		if text != "" {
			err = errors.New(text)
		}
		p.mu.Lock()
		if done := p.waiting[name]; done != nil {
			done <- err
		}
		p.mu.Unlock()
	}
}

func (p *program) do(name, think string) error {
	done := make(chan error, 1)
	p.mu.Lock()
	p.waiting[name] = done
	_, err := fmt.Fprintln(p.in, name, path(name, think))
	p.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case err = <-done:
	case <-time.After(patience):
		err = os.ErrDeadlineExceeded
	}
	return err
}

func (p *program) close() {
	p.in.Close()
	p.cmd.Process.Kill()
	p.cmd.Wait()
}
