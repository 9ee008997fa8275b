package box

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// serveWeb replies "mine" on a listener, after the time ?wait=DUR, and ?size=N more bytes, and speaks HTTP/1 ("http1"),
// HTTP/2 without TLS ("h2"), or both.
func serveWeb(listener net.Listener, speaks string) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
		time.Sleep(wait)
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		io.WriteString(w, "mine\n"+strings.Repeat("x", size))
	})
	site := &http.Server{Handler: handler, Protocols: new(http.Protocols)}
	site.Protocols.SetHTTP1(speaks != "h2")
	site.Protocols.SetUnencryptedHTTP2(speaks != "http1")
	site.Serve(listener)
}

// ports counts the ports given out, all below the ephemeral ports.
var ports atomic.Int32

// FreePort returns a port that no other test of the package uses.
func FreePort() int { return int(20000 + ports.Add(1)) }

// Get sends a request on a new connection, and returns the status code and the body,
// "refused" or another error.
func (n *Network) Get(address string) string {
	conn, err := n.Connect(address)
	if err != nil {
		if strings.Contains(err.Error(), "refused") {
			return "refused"
		}
		return err.Error()
	}
	defer conn.Close()
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	text, err := io.ReadAll(conn)
	head, body, _ := strings.Cut(string(text), "\r\n\r\n")
	if err != nil || len(head) < 12 {
		return fmt.Sprint(head, err)
	}
	return head[9:12] + " " + strings.TrimSpace(body)
}

// Accepts reports whether a connection to an address of the network succeeds.
func Accepts(n *Network, address string) bool {
	conn, err := n.Connect(address)
	if err == nil {
		conn.Close()
	}
	return err == nil
}
