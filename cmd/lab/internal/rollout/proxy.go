package rollout

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
)

// proxy is a balancer in this program: by turns, with a connection for each request. A
// replica out of reach gives a 502, and an answer cut short stays cut short.
type proxy struct {
	listener net.Listener
	server   *http.Server

	mu    sync.Mutex // requests run beside each other
	addrs []string
	turn  int
}

func openProxy() (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot open the balancer: %w", err)
	}
	p := &proxy{listener: listener}
	p.server = &http.Server{Handler: &httputil.ReverseProxy{
		Rewrite: p.choose,
		// The transport retries only on connections used before.
		Transport: &http.Transport{DisableKeepAlives: true},
		ErrorLog:  log.New(io.Discard, "", 0),
	}}
	go p.server.Serve(listener)
	return p, nil
}

func (p *proxy) choose(r *httputil.ProxyRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn++
	r.Out.URL.Scheme, r.Out.URL.Host = "http", p.addrs[p.turn%len(p.addrs)]
}

func (p *proxy) add(r *replica) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addrs = append(p.addrs, r.addr)
	return nil
}

func (p *proxy) remove(r *replica) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addrs = slices.DeleteFunc(p.addrs, func(addr string) bool { return addr == r.addr })
	return nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) close() { p.server.Close() }
