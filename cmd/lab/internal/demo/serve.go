package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// serve is the server of a replica: prints an address, and answers HTTP requests for
// /DURATION after that time, a connection each. TERM kills the server, with all requests
// in flight. With the argument "graceful" the server ends a second after TERM instead.
//
// The server ends with its standard input: no process outlives the demo.
func serve(args []string) error {
	if len(args) > 0 && args[0] == "graceful" {
		exitLate(time.Second)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go answer(conn)
	}
}

// exitLate exits a while after TERM.
func exitLate(after time.Duration) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		<-term
		time.Sleep(after)
		os.Exit(0)
	}()
}

const served = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nserved\n"

func answer(conn net.Conn) {
	defer conn.Close()
	request, err := readHead(conn)
	if err != nil {
		return
	}
	words := strings.Fields(request)
	if len(words) < 2 {
		return
	}
	think, err := time.ParseDuration(strings.TrimPrefix(words[1], "/"))
	if err == nil {
		time.Sleep(think)
	}
	io.WriteString(conn, served)
}

// readHead reads an HTTP request without a body.
func readHead(conn net.Conn) (head string, err error) {
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}
		head += line
		if line == "\r\n" {
			return head, nil
		}
	}
}
