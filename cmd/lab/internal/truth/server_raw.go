package truth

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Servers of lines. TERM kills all servers of this program.
var (
	raw      = &server{command: role("raw")}
	greeter  = &server{command: role("raw", "greet")}    // speaks first
	deaf     = &server{command: role("raw", "deaf")}     // accepts and never reads
	shut     = &server{command: role("raw", "shut")}     // never accepts
	receiver = &server{command: role("raw", "receiver")} // reads and never answers
)

// forever is longer than any trial. A select without cases would be a deadlock to Go.
const forever = 24 * time.Hour

// serveRaw serves lines, each a command:
//
//	answer D N [D N ...]  waits D and sends N bytes, and so on, then a newline
//	push D N              sends N bytes each D until the client has gone
//	upload N              reads N bytes and answers
//	listen PORT [shut]    listens on another port too, and answers; shut never accepts
//	self D                connects to itself and asks, each D
//	never                 does not answer; the connection stays open
func serveRaw(mode string) error {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	if mode == "shut" {
		time.Sleep(forever)
	}
	return acceptRaw(listener, mode)
}

func acceptRaw(listener net.Listener, mode string) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			rawConn{conn, bufio.NewReader(conn)}.serve(mode)
		}()
	}
}

type rawConn struct {
	net.Conn
	in *bufio.Reader
}

func (c rawConn) serve(mode string) {
	switch mode {
	case "deaf":
		time.Sleep(forever)
	case "receiver":
		io.Copy(io.Discard, c)
		return
	case "greet":
		fmt.Fprintln(c, "welcome")
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil || c.obey(strings.Fields(line)) != nil {
			return
		}
	}
}

// obey carries out a command. An error ends the connection.
func (c rawConn) obey(words []string) error {
	if len(words) == 0 {
		return io.ErrUnexpectedEOF
	}
	switch args := words[1:]; words[0] {
	case "answer":
		for ; len(args) >= 2; args = args[2:] {
			time.Sleep(duration(args[0]))
			if err := c.sendBytes(args[1]); err != nil {
				return err
			}
		}
	case "push":
		for {
			time.Sleep(duration(args[0]))
			if err := c.sendBytes(args[1]); err != nil {
				return err
			}
		}
	case "upload":
		if _, err := io.CopyN(io.Discard, c.in, int64(number(args[0]))); err != nil {
			return err
		}
	case "listen":
		listener, err := net.Listen("tcp", ":"+args[0])
		if err != nil {
			return err
		}
		if len(args) == 1 {
			go acceptRaw(listener, "")
		}
	case "self":
		go probeSelf(duration(args[0]))
	case "never":
		_, err := io.Copy(io.Discard, c.in)
		return err
	}
	_, err := fmt.Fprintln(c)
	return err
}

// probeSelf asks on a connection of its own each period, as an exec probe does.
func probeSelf(period time.Duration) {
	for range time.Tick(period) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return
		}
		fmt.Fprintln(conn, "answer 0s 10")
		bufio.NewReader(conn).ReadString('\n')
		conn.Close()
	}
}

func (c rawConn) sendBytes(count string) error {
	_, err := c.Write([]byte(strings.Repeat("x", number(count))))
	return err
}

func duration(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
