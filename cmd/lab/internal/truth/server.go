package truth

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// serve is a server of the laboratory, with its words. TERM kills all but the graceful ones.
func serve(args []string) error {
	switch args[0] {
	case "raw":
		return serveRaw(append(args, "", "")[1:])
	case "grpc":
		return serveGRPC(args[1:])
	}
	return serveHTTP(args[1:])
}

// serveHTTP is a server of net/http with the words tls and graceful: TERM means Shutdown.
func serveHTTP(words []string) error {
	site := &http.Server{Addr: fmt.Sprintf(":%d", port), Handler: newHandler(), Protocols: new(http.Protocols)}
	site.Protocols.SetHTTP1(true)
	site.Protocols.SetHTTP2(true)
	site.Protocols.SetUnencryptedHTTP2(true)
	listen := site.ListenAndServe
	if slices.Contains(words, "tls") {
		listen = func() error { return site.ListenAndServeTLS("cert.pem", "cert.pem") }
	}
	if !slices.Contains(words, "graceful") {
		return listen()
	}
	term, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go listen()
	<-term.Done()
	return site.Shutdown(context.Background())
}

// serveUpstream starts the server behind the proxies, in the clients' network.
func serveUpstream() error {
	listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", clientEnd, upstreamPort))
	if err != nil {
		return err
	}
	go http.Serve(listener, newHandler())
	return nil
}

func newHandler() http.Handler {
	handler := http.NewServeMux()
	handler.HandleFunc("/", answer)
	handler.HandleFunc("/lines", upgrade)
	return handler
}

// answer reads the body, late, and answers after think with size bytes, of which it sends the
// first half, waits for pause, and sends the second. With each the bytes come one piece
// each period, count times.
func answer(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	time.Sleep(duration(query.Get("late")))
	io.Copy(io.Discard, r.Body)
	time.Sleep(duration(query.Get("think")))
	out := http.NewResponseController(w)
	piece := strings.Repeat("x", max(number(query.Get("size")), 6))
	if each := duration(query.Get("each")); each > 0 {
		for range number(query.Get("count")) {
			io.WriteString(w, piece)
			out.Flush()
			time.Sleep(each)
		}
		return
	}
	half := len(piece) / 2
	io.WriteString(w, piece[:half])
	if pause := duration(query.Get("pause")); pause > 0 {
		out.Flush()
		time.Sleep(pause)
	}
	io.WriteString(w, piece[half:])
}

// upgrade becomes a server of lines on the connection, as servers of WebSockets do.
func upgrade(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "lines")
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, in, err := http.NewResponseController(w).Hijack()
	if err == nil {
		defer conn.Close()
		rawConn{conn, in.Reader}.serve()
	}
}

// serveRaw serves lines; see obey. With "shut" it accepts no connection, with "receiver" it
// answers nothing, and with "greet D" it speaks first, after D.
func serveRaw(words []string) error {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	if words[0] == "shut" {
		time.Sleep(forever)
	}
	return accept(listener, func(c rawConn) {
		switch words[0] {
		case "receiver":
			io.Copy(io.Discard, c)
			return
		case "greet":
			time.Sleep(duration(words[1]))
			fmt.Fprintln(c, "welcome")
		}
		c.serve()
	})
}

func accept(listener net.Listener, serve func(rawConn)) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
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
		_, err = io.CopyN(io.Discard, c.in, int64(number(args[0])))
	case "listen":
		listener := must(net.Listen("tcp", ":"+args[0]))
		if len(args) == 1 {
			go accept(listener, rawConn.serve)
		} else {
			notAccepted = listener
		}
	case "self":
		go probeSelf(duration(args[0]))
	case "never":
		_, err = io.Copy(io.Discard, c.in)
		return io.EOF
	}
	if err == nil {
		_, err = fmt.Fprintln(c)
	}
	return err
}

// notAccepted keeps a listener from the garbage collector, which would close it.
var notAccepted net.Listener

func (c rawConn) sendAfter(wait, count string) error {
	time.Sleep(duration(wait))
	_, err := io.WriteString(c, strings.Repeat("x", number(count)))
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

// writeCertificate writes a self-signed certificate and its key.
func writeCertificate(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{serverEnd}, // Caddy takes no certificate without names
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	return os.WriteFile(path, text, 0o600)
}
