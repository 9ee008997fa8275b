package truth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Servers of net/http, HTTP/1.1 alone.
var (
	goHTTP     = &server{command: role("http")}
	goTLS      = &server{command: role("https"), tls: true}
	goGraceful = &server{command: role("graceful")} // TERM means Shutdown
)

// serveHTTP is a server with answers as the requests demand.
func serveHTTP(kind string) error {
	site := &http.Server{Addr: fmt.Sprintf(":%d", port), Handler: http.HandlerFunc(answer)}
	switch kind {
	case "https":
		certificate, err := newCertificate()
		if err != nil {
			return err
		}
		site.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}}
		return site.ListenAndServeTLS("", "")
	case "graceful":
		return serveUntilTERM(site)
	}
	return site.ListenAndServe()
}

func serveUntilTERM(site *http.Server) error {
	term, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go site.ListenAndServe()
	<-term.Done()
	return site.Shutdown(context.Background())
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

// serveUpstream starts the server behind the proxies, in the clients' network.
func serveUpstream() error {
	listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", clientEnd, upstreamPort))
	if err != nil {
		return err
	}
	go http.Serve(listener, newWeb())
	return nil
}

func newCertificate() (tls.Certificate, error) {
	text, err := newPEM()
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(text, text)
}

// newPEM returns a self-signed certificate and its key.
func newPEM() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{serverEnd}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), nil
}

// withCertificate adds the file cert.pem, certificate and key, to a server's command.
func withCertificate(command func(place) ([]string, error)) func(place) ([]string, error) {
	return func(at place) ([]string, error) {
		text, err := newPEM()
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(at.dir+"/cert.pem", text, 0o600); err != nil {
			return nil, err
		}
		return command(at)
	}
}
