package rollout

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Roles are the programs of the experiment, by the first argument.
var Roles = map[string]func(args []string) error{"serve": serve}

// serve is an HTTP server at an address, which answers requests for /DURATION after that time.
// Its kinds are
//
//	dies      TERM kills the server at once, with all requests in flight
//	graceful  on TERM, requests in flight are answered, and kept connections closed
//	lingers   likewise, and the exit takes a second more
//
// On the loopback interface the server prints its address, and ends with its standard input:
// no process outlives the demo.
func serve(args []string) error {
	kind := args[0]
	listener, err := net.Listen("tcp", args[1])
	if err != nil {
		return err
	}
	if strings.HasPrefix(args[1], "127.") {
		fmt.Println(listener.Addr())
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	term := make(chan os.Signal, 1)
	if kind != "dies" {
		signal.Notify(term, syscall.SIGTERM)
	}
	go func() {
		<-term
		listener.Close()
	}()
	accept(listener)
	if kind == "lingers" {
		time.Sleep(time.Second)
	}
	return nil
}

// accept serves until the listener is closed, and returns when all requests are answered and
// kept connections are closed.
func accept(listener net.Listener) {
	var all sync.WaitGroup
	var conns []net.Conn
	for {
		conn, err := listener.Accept()
		if err != nil {
			break
		}
		conns = append(conns, conn)
		all.Go(func() { answerAll(conn) })
	}
	for _, conn := range conns {
		conn.SetReadDeadline(time.Now())
	}
	all.Wait()
}

// answerAll answers one request after the other.
func answerAll(conn net.Conn) {
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
		answer(conn, line)
		if strings.EqualFold(header.Get("Connection"), "close") {
			return
		}
	}
}

const served = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nserved"

// answer waits as the request demands. The answer to a GET comes in two parts, so that it can
// be cut short.
func answer(conn net.Conn, request string) {
	method, path, _ := strings.Cut(request, " /")
	think, _, _ := strings.Cut(path, " ")
	if wait, err := time.ParseDuration(think); err == nil {
		time.Sleep(wait)
	}
	rest := served
	if method == "GET" {
		io.WriteString(conn, rest[:len(rest)-3])
		time.Sleep(time.Millisecond)
		rest = rest[len(rest)-3:]
	}
	io.WriteString(conn, rest)
}

// chat answers the messages of a WebSocket.
func chat(conn net.Conn, in io.Reader) {
	io.WriteString(conn, upgraded)
	text := make([]byte, len(message))
	for {
		if _, err := io.ReadFull(in, text); err != nil {
			return
		}
		io.WriteString(conn, echo)
	}
}
