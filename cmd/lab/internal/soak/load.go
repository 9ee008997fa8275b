package main

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// load is clients that ask the server all the time, one of them on a connection
// that stays.
type load struct {
	over    chan struct{}
	once    sync.Once
	clients sync.WaitGroup
	failed  atomic.Int64
}

func newLoad(port int, total *tally) *load {
	l := &load{over: make(chan struct{})}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for i := range 3 {
		l.clients.Go(func() {
			var kept net.Conn
			for tick := time.NewTicker(10 * time.Millisecond); ; {
				select {
				case <-l.over:
					tick.Stop()
					if kept != nil {
						kept.Close()
					}
					return
				case <-tick.C:
				}
				conn, err := request(kept, address)
				if err != nil {
					l.failed.Add(1)
					continue
				}
				total.add("requests", 1)
				if kept = conn; i > 0 {
					conn.Close()
					kept = nil
				}
			}
		})
	}
	return l
}

// request asks once, on a connection that is kept, or on a new one.
func request(kept net.Conn, address string) (conn net.Conn, err error) {
	if conn = kept; conn == nil {
		if conn, err = net.Dial("tcp", address); err != nil {
			return nil, err
		}
	}
	fmt.Fprintln(conn, "ping")
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// end ends it.
func (l *load) end() {
	l.once.Do(func() { close(l.over) })
	l.clients.Wait()
}
