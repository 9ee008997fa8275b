package truth

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// wire says how a client speaks HTTP.
type wire struct {
	keep   bool          // connections are used again
	h2     bool          // HTTP/2 rather than HTTP/1.1; without TLS, h2c by prior knowledge
	tls12  bool          // at most TLS 1.2
	ping   time.Duration // an HTTP/2 PING after so much silence
	expect bool          // 100-continue before a body
}

// Wires of most clients.
var (
	http1 = wire{keep: true}
	http2 = wire{keep: true, h2: true}
)

// over returns a client of the case's server, over TLS if the server speaks TLS.
func (c *client) over(w wire) *site {
	p := c.site(w.keep)
	transport := p.http.Transport.(*http.Transport)
	if w.tls12 {
		transport.TLSClientConfig.MaxVersion = tls.VersionTLS12
	}
	if w.h2 {
		transport.TLSNextProto = nil
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetHTTP2(c.t.c.server.tls)
		transport.Protocols.SetUnencryptedHTTP2(!c.t.c.server.tls)
		transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: w.ping}
	}
	if w.expect {
		transport.ExpectContinueTimeout = 60 * s
	}
	return p
}

// postExpecting makes a request that counts, and sends the body when the server asks for
// the body with 100 Continue.
func (p *site) postExpecting(path string, body io.Reader) {
	p.t.real(func() error {
		request, err := http.NewRequest("POST", p.base+path, body)
		if err != nil {
			return err
		}
		request.Header.Set("Expect", "100-continue")
		return p.finish(p.http.Do(request))
	})
}

// finish reads an answer to its end.
func (p *site) finish(answer *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// download makes a request that counts, and reads size bytes of the answer each period.
func (p *site) download(path string, size int64, period time.Duration) {
	p.t.real(func() error {
		answer, err := p.http.Get(p.base + path)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		for err == nil {
			p.t.sleep(period)
			_, err = io.CopyN(io.Discard, answer.Body, size)
		}
		if err == io.EOF {
			return nil
		}
		return err
	})
}

// getAll makes requests that count, all in one segment. The connection is for HTTP/1.1.
func (c *conn) getAll(paths ...string) {
	var text strings.Builder
	for _, path := range paths {
		fmt.Fprintf(&text, "GET %s HTTP/1.1\r\nHost: truth\r\n\r\n", path)
	}
	if c.err == nil {
		_, c.err = io.WriteString(c, text.String())
	}
	for range paths {
		c.t.real(c.readAnswer)
	}
}

// getClosing makes a request that counts, and closes the client's half of the connection.
func (c *conn) getClosing(path string) {
	c.t.real(func() error {
		if c.err != nil {
			return c.err
		}
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: truth\r\n\r\n", path); err != nil {
			return err
		}
		c.halfClose()
		return c.readAnswer()
	})
}

// readAnswer reads an HTTP/1.1 answer to its end.
func (c *conn) readAnswer() error {
	if c.err != nil {
		return c.err
	}
	answer, err := http.ReadResponse(c.in, nil)
	return (&site{}).finish(answer, err)
}

// tunnel returns a connection to the upstream through the server, with CONNECT.
func (c *client) tunnel() *conn {
	conn := c.dial()
	if conn.err != nil {
		return conn
	}
	upstream := fmt.Sprintf("%s:%d", clientEnd, upstreamPort)
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", upstream, upstream)
	answer, err := http.ReadResponse(conn.in, &http.Request{Method: "CONNECT"})
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", answer.StatusCode)
	}
	conn.err = err
	return conn
}

// webSocket is a client of chat in server_web.go.
type webSocket struct {
	t *trial
	*websocket.Conn
	err error
}

// webSocket opens a WebSocket. An error shows at the first message.
func (c *client) webSocket() *webSocket {
	p := c.over(http1)
	socket, _, err := websocket.Dial(context.Background(), p.base+"/ws", &websocket.DialOptions{HTTPClient: p.http})
	return &webSocket{c.t, socket, err}
}

// exchange sends a message and reads count messages.
func (w *webSocket) exchange(text string, count int) error {
	if w.err != nil {
		return w.err
	}
	if err := w.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		return err
	}
	for range count {
		if _, _, err := w.Read(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

// ask sends a message and reads count messages, each of which counts.
func (w *webSocket) ask(text string, count int) {
	w.t.real(func() error { return w.exchange(text, 0) })
	for range count {
		w.t.real(func() error {
			if w.err != nil {
				return w.err
			}
			_, _, err := w.Read(context.Background())
			return err
		})
	}
}

// keepAlive sends a ping frame each period until the server has gone.
func (w *webSocket) keepAlive(period time.Duration) {
	if w.err != nil {
		w.t.check(w.err)
		return
	}
	ctx := w.CloseRead(context.Background())
	for w.t.sleep(period) {
		w.t.spare(w.Ping(ctx))
	}
}

// greetH2 opens an HTTP/2 connection over TLS and exchanges SETTINGS, without a request.
// See RFC 9113, section 3.4.
func (c *client) greetH2() {
	nc, err := c.dialContext(context.Background(), "tcp", serverAddr())
	if err != nil {
		c.t.check(err)
		return
	}
	secure := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	const (
		settings     = "\x00\x00\x06\x04\x00\x00\x00\x00\x00" + "\x00\x02\x00\x00\x00\x00"
		windowUpdate = "\x00\x00\x04\x08\x00\x00\x00\x00\x00" + "\x00\xef\x00\x01"
		ack          = "\x00\x00\x00\x04\x01\x00\x00\x00\x00"
	)
	_, err = io.WriteString(secure, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+settings+windowUpdate)
	c.t.check(err)
	in := bufio.NewReader(secure)
	for {
		header := make([]byte, 9)
		if _, err := io.ReadFull(in, header); err != nil {
			return
		}
		length := binary.BigEndian.Uint32(append([]byte{0}, header[:3]...))
		if _, err := in.Discard(int(length)); err != nil {
			return
		}
		if header[3] == 4 && header[4] == 0 {
			io.WriteString(secure, ack)
		}
	}
}

// handshake opens a connection over TLS and sends no request.
func (p *site) handshake() {
	transport := p.http.Transport.(*http.Transport)
	nc, err := transport.DialContext(context.Background(), "tcp", serverAddr())
	if err == nil {
		err = tls.Client(nc, transport.TLSClientConfig).Handshake()
	}
	p.t.check(err)
}
