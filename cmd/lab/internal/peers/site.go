package peers

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// site is a client of net/http: http and https speak HTTP/1.1, h2 and h2c HTTP/2.
type site struct {
	http *http.Client
	base string
}

func (c *Client) site() *site {
	protocol := strings.TrimSuffix(c.Protocol, "12")
	transport := &http.Transport{
		DialContext:         c.Dial,
		DisableKeepAlives:   c.Renewed,
		MaxIdleConnsPerHost: 1000,
		MaxConnsPerHost:     c.Conns,
		TLSClientConfig:     c.tls(),
		Protocols:           new(http.Protocols),
		HTTP2:               &http.HTTP2Config{SendPingTimeout: c.Ping},
	}
	transport.Protocols.SetHTTP1(protocol == "http" || protocol == "https")
	transport.Protocols.SetHTTP2(protocol == "h2")
	transport.Protocols.SetUnencryptedHTTP2(protocol == "h2c")
	scheme := "http"
	if protocol == "https" || protocol == "h2" {
		scheme = "https"
	}
	return &site{&http.Client{Transport: transport, Timeout: c.Limit}, scheme + "://" + c.Server}
}

// Take takes a step: a request, of which "keyed" is a POST that may be sent again.
func (p *site) Take(step plays.Step) error {
	args := append(strings.Fields(step.Arg), "", "", "")
	switch path := args[0]; step.Verb {
	case "get":
		return p.do("GET", path, "", nil)
	case "post":
		return p.do("POST", path, "", strings.NewReader("an order"))
	case "keyed":
		return p.do("POST", path, path, strings.NewReader("an order"))
	case "upload":
		return p.do("POST", path, "", slowly(plays.Number(args[1]), plays.Number(args[2]), plays.Duration(args[3])))
	case "download":
		return p.download(path, plays.Number(args[1]), plays.Duration(args[2]))
	case "close":
		p.http.CloseIdleConnections()
		return nil
	}
	return unknown(step)
}

func (p *site) do(method, path, key string, body io.Reader) error {
	request, err := http.NewRequest(method, p.base+path, body)
	if err != nil {
		return err
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	return load.Finish(p.http.Do(request))
}

// download reads so many bytes of an answer each period.
func (p *site) download(path string, size int, period time.Duration) error {
	answer, err := p.http.Get(p.base + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	for err == nil {
		time.Sleep(period)
		_, err = io.CopyN(io.Discard, answer.Body, int64(size))
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// slowly yields pieces of a size, one each period.
func slowly(count, size int, period time.Duration) io.Reader {
	pieces, in := io.Pipe()
	go func() {
		for range count {
			time.Sleep(period)
			in.Write(make([]byte, size))
		}
		in.Close()
	}()
	return pieces
}
