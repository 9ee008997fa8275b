// Server is a small HTTP server that does nothing about signals, like most
// programs: TERM kills it at once, with whatever it was about to answer.
//
//	server ADDRESS
//
// It prints one line, "ready HOST:PORT", once it listens, so that port 0 can
// be asked for and nobody has to sleep. Each connection carries one request.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// thinking is how long an answer takes: long enough for a request to be in
// flight when the signal comes, short enough not to matter otherwise.
const thinking = 5 * time.Millisecond

// net/http would do as well, but crypto/tls comes with it: more to compile, on
// a machine that has compiled nothing yet, than all the rest together.
const answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"

func main() {
	if len(os.Args) != 2 {
		fatal("usage: server ADDRESS")
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fatal(err)
	}
	fmt.Println("ready", listener.Addr())
	for {
		conn, err := listener.Accept()
		if err != nil {
			fatal(err)
		}
		go serve(conn)
	}
}

func serve(conn net.Conn) {
	defer conn.Close()
	if !readRequest(conn) {
		return
	}
	time.Sleep(thinking)
	io.WriteString(conn, answer)
}

// readRequest reads up to the empty line that ends a request without a body.
func readRequest(r io.Reader) bool {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if lines.Text() == "" {
			return true
		}
	}
	return false
}

func fatal(reason any) {
	fmt.Fprintln(os.Stderr, "server:", reason)
	os.Exit(1)
}
