package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Server is an HTTP server, which answers a request for /DURATION after that time, and does without
// net/http, as Conn.Head does.
type Server struct {
	net.Listener
	Upstream string // the address of the server behind a proxy, or ""

	announces atomic.Bool
	over      chan struct{}
}

// Listen returns a server that listens at an address.
func Listen(addr string) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	return &Server{Listener: listener, over: make(chan struct{})}, err
}

// Serve serves until Stop, and returns when all requests are answered and kept connections are
// closed.
func (s *Server) Serve() {
	var all sync.WaitGroup
	var conns []net.Conn
	for {
		conn, err := s.Accept()
		if err != nil {
			break
		}
		conns = append(conns, conn)
		all.Go(func() { s.answerAll(conn) })
	}
	<-s.over
	for _, conn := range conns {
		conn.SetReadDeadline(time.Now())
	}
	all.Wait()
}

// Stop ends Serve. Answers on kept connections ask the client to close for so long, since a
// request may be on the way to a connection that is closed here.
func (s *Server) Stop(announce time.Duration) {
	s.announces.Store(announce > 0)
	s.Close()
	time.Sleep(announce)
	close(s.over)
}

// answerAll answers one request after the other.
func (s *Server) answerAll(conn net.Conn) {
	defer conn.Close()
	in := textproto.NewReader(bufio.NewReader(conn))
	for {
		line, err := in.ReadLine()
		if err != nil {
			return
		}
		header, err := in.ReadMIMEHeader()
		if err != nil {
			return
		}
		if header.Get("Upgrade") != "" {
			chat(conn, in.R)
			return
		}
		size, _ := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
		io.CopyN(io.Discard, in.R, size)
		last := strings.EqualFold(header.Get("Connection"), "close")
		if s.answer(conn, line, last) {
			return
		}
	}
}

// answer waits as the request demands, and reports whether the answer is the last. That to a GET
// comes in two parts, so that it can be cut short.
func (s *Server) answer(conn net.Conn, request string, last bool) bool {
	method, path, _ := strings.Cut(request, " /")
	path, _, _ = strings.Cut(path, " ")
	wait, _ := time.ParseDuration(path) // none for another path
	time.Sleep(wait)
	status := 200
	if s.Upstream != "" {
		proxy := Client{Addr: s.Upstream}
		if proxy.HTTP("/"+path, "", time.Now().Add(time.Minute)) != Answered {
			status = 502
		}
	}
	header := ""
	if s.announces.Load() {
		last, header = true, "Connection: close\r\n"
	}
	rest := fmt.Sprintf("HTTP/1.1 %d lab\r\n%sContent-Length: 6\r\n\r\nserved", status, header)
	if method == "GET" {
		io.WriteString(conn, rest[:len(rest)-3])
		time.Sleep(time.Millisecond)
		rest = rest[len(rest)-3:]
	}
	io.WriteString(conn, rest)
	return last
}

// The one WebSocket of the laboratory: its handshake with the key of RFC 6455's example, and its
// message, which is masked with zeros on the way to the server.
const (
	upgrade = "GET / HTTP/1.1\r\nHost: lab\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	message = "\x81\x85\x00\x00\x00\x00quack"
	echo    = "\x81\x05quack"
)

// chat answers the messages of a WebSocket.
func chat(conn net.Conn, in io.Reader) {
	io.WriteString(conn, upgraded)
	for text := make([]byte, len(message)); ; io.WriteString(conn, echo) {
		if _, err := io.ReadFull(in, text); err != nil {
			return
		}
	}
}

// Upgrade makes the connection a WebSocket.
func (c *Conn) Upgrade() Kind {
	io.WriteString(c, upgrade)
	status, _, err := c.Head()
	return KindOf(status, err)
}

// Chat sends a message on a WebSocket, and reads the answer.
func (c *Conn) Chat() error {
	io.WriteString(c, message)
	_, err := io.ReadFull(c.In, make([]byte, len(echo)))
	return err
}
