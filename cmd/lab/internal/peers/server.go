package peers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/websocket"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// Serve is a server of the laboratory: an address, a kind and words. TERM kills all but the graceful
// ones. On the loopback interface the server ends with its standard input: no process outlives the demo.
func Serve(args []string) {
	addr, words := args[0], append(args[2:], "", "")
	listener := must.Get(net.Listen("tcp", addr))
	if strings.HasPrefix(addr, "127.") {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	switch args[1] {
	case "raw":
		serveRaw(listener, words)
	case "grpc":
		serveGRPC(listener, words)
	default:
		serveHTTP(listener, words)
	}
}

// serveHTTP is a server of net/http with the words tls and graceful: TERM means Shutdown.
func serveHTTP(listener net.Listener, words []string) {
	site := &http.Server{Handler: leave(newHandler()), Protocols: new(http.Protocols)}
	site.Protocols.SetHTTP1(true)
	site.Protocols.SetHTTP2(true)
	site.Protocols.SetUnencryptedHTTP2(true)
	stop := func() { site.Shutdown(context.Background()) }
	onTerm(words, stop)
	var err error
	if slices.Contains(words, "tls") {
		err = site.ServeTLS(listener, "cert.pem", "cert.pem")
	} else {
		err = site.Serve(listener)
	}
	must.Be(err == http.ErrServerClosed, "%w", err)
	stop() // waits for requests in flight
}

// onTerm has TERM stop a server, if the words have graceful; else TERM kills the server.
func onTerm(words []string, stop func()) {
	if slices.Contains(words, "graceful") {
		term, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		context.AfterFunc(term, stop)
	}
}

// leave tells clients to leave after USR2, the signal of --on-stop=USR2 in docs/servers.md.
func leave(next http.Handler) http.Handler {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR2)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(told) > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// ServeUpstream starts the server behind proxies.
func ServeUpstream(addr string) {
	go http.Serve(must.Get(net.Listen("tcp", addr)), newHandler())
}

func newHandler() http.Handler {
	handler := http.NewServeMux()
	handler.HandleFunc("/", answer)
	handler.Handle("/websocket", websocket.Server{Handler: func(conn *websocket.Conn) {
		rawConn{conn, bufio.NewReader(conn)}.serve()
	}})
	return handler
}

// work takes the time that a request demands. A request with a name is printed, and, as by
// handlers that pass the context on, given up if the client seems gone: work returns false.
func work(ctx context.Context, think, name string) bool {
	if name == "" {
		ctx = context.Background()
	} else {
		fmt.Println(name)
	}
	select {
	case <-time.After(plays.Duration(think)):
		return true
	case <-ctx.Done():
		return false
	}
}

// answer reads the body, late, and answers after think with size bytes, of which it sends the
// first half, waits for pause, and sends the second. With each the bytes come one piece
// each period, count times.
func answer(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	time.Sleep(plays.Duration(query.Get("late")))
	io.Copy(io.Discard, r.Body)
	if !work(r.Context(), query.Get("think"), query.Get("name")) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	out := http.NewResponseController(w)
	piece := strings.Repeat("x", max(plays.Number(query.Get("size")), 6))
	if each := plays.Duration(query.Get("each")); each > 0 {
		for range plays.Number(query.Get("count")) {
			io.WriteString(w, piece)
			out.Flush()
			time.Sleep(each)
		}
		return
	}
	half := len(piece) / 2
	io.WriteString(w, piece[:half])
	if pause := plays.Duration(query.Get("pause")); pause > 0 {
		out.Flush()
		time.Sleep(pause)
	}
	io.WriteString(w, piece[half:])
}

// serveRaw serves lines; see obey. With "shut" it accepts no connection, with "receiver" it
// answers nothing, and with "greet D" it speaks first, after D.
func serveRaw(listener net.Listener, words []string) {
	if words[0] == "shut" {
		time.Sleep(24 * time.Hour) // to Go, a select without cases would be a deadlock
	}
	accept(listener, func(c rawConn) {
		switch words[0] {
		case "receiver":
			io.Copy(io.Discard, c)
			return
		case "greet":
			time.Sleep(plays.Duration(words[1]))
			fmt.Fprintln(c, "welcome")
		}
		c.serve()
	})
}

func accept(listener net.Listener, serve func(rawConn)) {
	for {
		conn := must.Get(listener.Accept())
		go func() {
			defer conn.Close()
			serve(rawConn{conn, bufio.NewReader(conn)})
		}()
	}
}

type rawConn struct {
	net.Conn
	in *bufio.Reader
}

func (c rawConn) serve() {
	for {
		line, err := c.in.ReadString('\n')
		if err != nil || c.obey(strings.Fields(line)) != nil {
			return
		}
	}
}

// obey carries out a line. An error ends the connection.
//
//	answer D N [D N ...]  waits D and sends N bytes, and so on, then a newline
//	push D N              sends N bytes each D until the client has gone
//	upload N              reads N bytes and answers
//	listen PORT [shut]    listens on another port too, and answers; shut never accepts
//	self D                connects to itself and asks, each D
//	work NAME D           see work
//	never                 does not answer; the connection stays open
func (c rawConn) obey(words []string) error {
	if len(words) == 0 {
		return io.ErrUnexpectedEOF
	}
	var err error
	switch args := words[1:]; words[0] {
	case "answer":
		for ; len(args) >= 2 && err == nil; args = args[2:] {
			err = c.sendAfter(args[0], args[1])
		}
	case "push":
		for err == nil {
			err = c.sendAfter(args[0], args[1])
		}
	case "upload":
		_, err = io.CopyN(io.Discard, c.in, int64(plays.Number(args[0])))
	case "listen":
		listener := must.Get(net.Listen("tcp", ":"+args[0]))
		if len(args) == 1 {
			go accept(listener, rawConn.serve)
		} else {
			notAccepted = append(notAccepted, listener)
		}
	case "self":
		go probeSelf(plays.Duration(args[0]))
	case "work":
		work(context.Background(), args[1], args[0])
	case "never":
		_, _ = io.Copy(io.Discard, c.in)
		return io.EOF
	}
	if err == nil {
		_, err = fmt.Fprintln(c)
	}
	return err
}

// notAccepted keeps listeners from the garbage collector, which would close them.
var notAccepted []net.Listener

func (c rawConn) sendAfter(wait, count string) error {
	time.Sleep(plays.Duration(wait))
	_, err := io.WriteString(c, strings.Repeat("x", plays.Number(count)))
	return err
}

// probeSelf asks on a connection of its own each period, as an exec probe does.
func probeSelf(period time.Duration) {
	for range time.Tick(period) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", plays.Port))
		if err != nil {
			return
		}
		fmt.Fprintln(conn, "answer 0s 10")
		bufio.NewReader(conn).ReadString('\n')
		conn.Close()
	}
}
