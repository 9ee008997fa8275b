package main

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// balancer sends requests to the replicas by turns, with a new connection each. A replica
// that cannot be reached, or that ends before the first byte of the answer, gives a 502.
type balancer struct {
	listener net.Listener

	mu       sync.Mutex // requests run beside each other
	replicas []*replica
	turn     int
}

func openBalancer() (*balancer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot open the balancer: %w", err)
	}
	b := &balancer{listener: listener}
	go b.accept()
	return b, nil
}

func (b *balancer) accept() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			return
		}
		go b.relay(client)
	}
}

const badGateway = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

func (b *balancer) relay(client net.Conn) {
	defer client.Close()
	head, err := readHead(client)
	if err != nil {
		return
	}
	size, _ := b.forward(client, head)
	if size == 0 {
		io.WriteString(client, badGateway)
	}
}

// forward sends a request to a replica, and copies the answer, of which size is the number
// of bytes.
func (b *balancer) forward(client net.Conn, head string) (size int64, err error) {
	to := b.next()
	conn, err := net.DialTimeout("tcp", to.addr, time.Second)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer to.connected()()
	if _, err := io.WriteString(conn, head); err != nil {
		return 0, err
	}
	return io.Copy(client, conn)
}

func (b *balancer) next() *replica {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	return b.replicas[b.turn%len(b.replicas)]
}

func (b *balancer) remove(r *replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replicas = slices.DeleteFunc(b.replicas, func(other *replica) bool { return other == r })
}

func (b *balancer) addr() string { return b.listener.Addr().String() }

func (b *balancer) close() { b.listener.Close() }
