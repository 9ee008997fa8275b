// Package peers has what lab truth and lab kept play with: the servers, which are scripts and a
// program of the laboratory, and the clients, whose steps are text.
package peers

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// Client says how to connect.
type Client struct {
	Protocol string // tcp, mptcp, tls, tls-h2, websocket; http, https, https12, h2, h2c; grpc; or one of programs
	Server   string // an address for Dial
	Dir      string // of a program
	Dial     load.Dial
	Renewed  bool          // HTTP with a connection for each request
	Conns    int           // of HTTP, at most; 0: any number
	Ping     time.Duration // of HTTP/2 and gRPC, after so much silence
	Limit    time.Duration // of a request
}

// Link is a connection, or a client of a library that keeps one.
type Link interface {
	// Take takes a step.
	Take(plays.Step) error
}

// Open connects. The libraries of HTTP and gRPC connect at the first request.
func (c *Client) Open() (Link, error) {
	switch c.Protocol {
	case "":
		return nil, nil
	case "http", "https", "https12", "h2", "h2c":
		return c.site(), nil
	case "grpc":
		return c.channel()
	}
	if _, known := programs[c.Protocol]; known {
		p := &program{}
		return p, must.Try(func() { p.start(c) })
	}
	network := "tcp"
	if c.Protocol == "udp" {
		network = c.Protocol
	}
	conn, err := c.Dial(context.Background(), network, c.Server)
	if err != nil {
		return nil, err
	}
	stream := &Stream{load.NewConn(conn)}
	switch c.Protocol {
	case "tcp", "mptcp", "udp":
	case "tls", "tls-h2":
		secure := tls.Client(conn, c.tls())
		stream.Conn.Conn, stream.In = secure, bufio.NewReader(secure)
		err = secure.Handshake()
	case "websocket":
		err = stream.Upgrade()
	default:
		err = fmt.Errorf("unknown protocol %q", c.Protocol)
	}
	return stream, err
}

// tls returns a client's configuration, with TLS 1.2 where the protocol says so.
func (c *Client) tls() *tls.Config {
	config := &tls.Config{InsecureSkipVerify: true}
	if strings.HasSuffix(c.Protocol, "12") {
		config.MaxVersion = tls.VersionTLS12
	}
	if c.Protocol == "tls-h2" {
		config.NextProtos = []string{"h2"}
	}
	return config
}

func unknown(step plays.Step) error { return fmt.Errorf("unknown step %q", step.Verb) }
