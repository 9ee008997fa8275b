package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// serveWeb runs an HTTP server: "plain" for HTTP/1.1, "h2c" for HTTP/2 without TLS, "tls"
// for both with TLS, "graceful" with a Shutdown on TERM.
func (h *appHelper) serveWeb(kind, address string) {
	slow := func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(3 * time.Second) // a slow request
		fmt.Fprint(w, "done")
	}
	http.HandleFunc("/slow", slow)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, "served")
	})
	http.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, largeBodyLen)) })
	server := &http.Server{}
	l := h.listen(address)
	switch kind {
	case "h2c":
		server.Protocols = new(http.Protocols)
		server.Protocols.SetUnencryptedHTTP2(true)
		go server.Serve(l)
	case "tls":
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{newCertificate()}}
		go server.ServeTLS(l, "", "")
	case "graceful":
		h.shutdown = func() { die(server.Shutdown(context.Background())); os.Exit(0) }
		fallthrough
	default:
		go server.Serve(l)
	}
	h.runCommands()
}

// largeBodyLen is more than the kernel's socket buffers hold.
const largeBodyLen = 32 << 20

func newCertificate() tls.Certificate {
	key := testutil.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der := testutil.Must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
