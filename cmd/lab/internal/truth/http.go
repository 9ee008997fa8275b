package truth

import (
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// random is a source of moments.
type random = rand.Rand

func newRandom(seed uint64) *random { return rand.New(rand.NewPCG(seed, seed)) }

// site is an HTTP client of the case's server.
type site struct {
	t    *trial
	http *http.Client
	base string
}

// keep and fresh say whether a site uses connections again.
const (
	keep  = true
	fresh = false
)

// site returns an HTTP/1.1 client, over TLS if the server speaks it.
func (c *client) site(keep bool) *site {
	scheme := "http"
	if c.t.c.server.tls {
		scheme = "https"
	}
	transport := &http.Transport{
		DialContext:         c.dialContext,
		DisableKeepAlives:   !keep,
		MaxIdleConnsPerHost: 1000,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
	}
	return &site{c.t, &http.Client{Transport: transport}, scheme + "://" + serverAddr()}
}

func (p *site) do(method, path string, body io.Reader) error {
	request, err := http.NewRequest(method, p.base+path, body)
	if err != nil {
		return err
	}
	return p.send(request)
}

// send makes a request and reads the answer.
func (p *site) send(request *http.Request) error {
	answer, err := p.http.Do(request)
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

// get makes a request that counts.
func (p *site) get(path string) { p.t.real(func() error { return p.do("GET", path, nil) }) }

// post makes a request that counts, with a body.
func (p *site) post(path string, body io.Reader) {
	p.t.real(func() error { return p.do("POST", path, body) })
}

// ping makes a request that does not count.
func (p *site) ping(path string) { p.t.spare(p.do("GET", path, nil)) }

// slowBody yields a piece of the size each period, count times.
type slowBody struct {
	t      *trial
	period time.Duration
	size   int
	count  int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.count == 0 {
		return 0, io.EOF
	}
	b.count--
	b.t.sleep(b.period)
	n := min(b.size, len(p))
	clear(p[:n])
	return n, nil
}
