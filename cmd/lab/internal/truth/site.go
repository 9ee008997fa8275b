package truth

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// site is a client of net/http: http and https speak HTTP/1.1, h2 and h2c HTTP/2.
type site struct {
	t    *trial
	http *http.Client
	base string
}

func (c *client) site() *site {
	protocol := strings.TrimSuffix(c.p.protocol, "12")
	transport := &http.Transport{
		DialContext:         c.dial,
		DisableKeepAlives:   c.p.renewed,
		MaxIdleConnsPerHost: 1000,
		TLSClientConfig:     c.tls(),
		Protocols:           new(http.Protocols),
		HTTP2:               &http.HTTP2Config{SendPingTimeout: c.p.ping},
	}
	transport.Protocols.SetHTTP1(protocol == "http" || protocol == "https")
	transport.Protocols.SetHTTP2(protocol == "h2")
	transport.Protocols.SetUnencryptedHTTP2(protocol == "h2c")
	scheme := "http"
	if protocol == "https" || protocol == "h2" {
		scheme = "https"
	}
	return &site{c.t, &http.Client{Transport: transport}, scheme + "://" + c.server()}
}

func (p *site) take(verb, arg string) (known bool, err error) {
	args := append(strings.Fields(arg), "", "", "")
	switch path := args[0]; verb {
	case "get":
		err = p.do("GET", path, nil)
	case "post":
		err = p.do("POST", path, strings.NewReader("an order"))
	case "upload":
		err = p.do("POST", path, &slowBody{p.t, number(args[1]), number(args[2]), duration(args[3])})
	case "download":
		err = p.download(path, number(args[1]), duration(args[2]))
	default:
		return false, nil
	}
	return true, err
}

func (p *site) do(method, path string, body io.Reader) error {
	request, err := http.NewRequest(method, p.base+path, body)
	if err != nil {
		return err
	}
	return finish(p.http.Do(request))
}

// finish reads an answer to its end.
func finish(answer *http.Response, err error) error {
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

// download reads so many bytes of an answer each period.
func (p *site) download(path string, size int, period time.Duration) error {
	answer, err := p.http.Get(p.base + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	for err == nil {
		p.t.sleep(period)
		_, err = io.CopyN(io.Discard, answer.Body, int64(size))
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// slowBody yields pieces of a size, one each period.
type slowBody struct {
	t      *trial
	count  int
	size   int
	period time.Duration
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
